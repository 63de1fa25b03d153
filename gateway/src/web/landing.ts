import { fragment, htmlPage } from '../http/html.js'
import type { PreparedBody } from '../http/send.js'

export interface LandingOptions {
  /** `host:port` of the APIs. */
  readonly address: string
  readonly hasConsole: boolean
  /** Titles of the APIs by the path of their reference. */
  readonly references: ReadonlyMap<string, string>
}

/** The page that a browser shows at `/`. */
export function landingPage({ address, hasConsole, references }: LandingOptions): PreparedBody {
  const console = hasConsole
    ? fragment`<p><a href="/zac/">Open the web console</a></p>`
    : fragment`<p>No console is installed here. Set <code>OVERLAY_CONSOLE</code> to the directory of a built web
console and restart the gateway, or connect a console that runs elsewhere to
<code>https://${address}</code>.</p>`
  return htmlPage(
    'Overlay network controller',
    fragment`<p>This is the controller of an overlay network, at <code>${address}</code>.</p>
<h2>Web console</h2>
${console}
<h2>APIs</h2>
<ul>
${[...references].map(([path, title]) => fragment`<li><a href="${path}">${title}</a></li>\n`)}</ul>
<h2>State</h2>
<ul>
<li><a href="/status">Status</a>, for administrators</li>
<li><a href="/health-checks">Health</a></li>
<li><a href="/version">Version</a></li>
</ul>`,
  )
}

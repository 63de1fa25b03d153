import type { Health } from '@overlay/process'
import { sendData } from '../http/envelope.js'
import type { Answer, RequestContext } from '../http/exchange.js'
import { fragment, htmlPage, sendHtml } from '../http/html.js'
import { accepts } from '../http/negotiate.js'
import type { PreparedBody } from '../http/send.js'

interface Check {
  readonly healthy: boolean
  readonly id: string
}

/**
 * Whether this gateway serves and follows the other components, without reasons: strangers may ask.
 * wire: path and members are those of the original, without its times.
 * differs: if one is not healthy, the status is 503, as monitors expect. The gateway may still be ready.
 */
export function sendHealth(c: RequestContext, { checks }: Health): Answer {
  const states = Object.entries(checks).map(([id, state]) => ({ healthy: state === 'ok', id }))
  const healthy = states.every((state) => state.healthy)
  const status = healthy ? 200 : 503
  if (accepts(c.env.incoming, 'text/html')) return sendHtml(c, pageOf(healthy, states), status)
  c.env.outgoing.setHeader('cache-control', 'no-cache')
  return sendData(c, { checks: states, healthy }, status)
}

const pageOf = (healthy: boolean, checks: readonly Check[]) =>
  htmlPage(
    healthy ? 'This gateway is healthy' : 'This gateway is not healthy',
    fragment`<table>
<thead><tr><th scope="col">Component</th><th scope="col">State</th></tr></thead>
<tbody>
${checks.map(({ id, healthy }) => fragment`<tr><td>${id}</td><td>${healthy ? 'ok' : 'not healthy'}</td></tr>\n`)}</tbody>
</table>
<p><a href="/">Overview</a></p>`,
  )

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

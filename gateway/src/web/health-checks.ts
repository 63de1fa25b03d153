import type { Health } from '@overlay/platform/process'
import type { Answer } from '../http/endpoint.js'
import { accepts } from '../http/negotiate.js'
import type { RequestContext } from '../http/request-context.js'
import { send } from '../http/send.js'
import { fragment, htmlPage, sendHtml } from './html.js'

interface Check {
  readonly healthy: boolean
  readonly id: string
}

/**
 * Whether this gateway is ready, and the state of each dependency, without reasons: strangers may ask.
 * wire: path and members are those of the original, without its times.
 * differs: if the gateway is not ready, the status is 503, as probes expect.
 */
export function sendHealth(c: RequestContext, { ready, checks }: Health): Answer {
  const states = Object.entries(checks).map(([id, state]) => ({ healthy: state === 'ok', id }))
  const status = ready ? 200 : 503
  if (accepts(c.env.incoming, 'text/html')) return sendHtml(c, pageOf(ready, states), status)
  c.env.outgoing.setHeader('cache-control', 'no-cache')
  return send(c, status, JSON.stringify({ data: { checks: states, healthy: ready }, meta: {} }))
}

const pageOf = (ready: boolean, checks: readonly Check[]) =>
  htmlPage(
    ready ? 'This gateway is ready' : 'This gateway is not ready',
    fragment`<table>
<thead><tr><th scope="col">Part</th><th scope="col">State</th></tr></thead>
<tbody>
${checks.map(({ id, healthy }) => fragment`<tr><td>${id}</td><td>${healthy ? 'ok' : 'not ready'}</td></tr>\n`)}</tbody>
</table>
<p><a href="/">Overview</a></p>`,
  )

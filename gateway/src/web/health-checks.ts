import type { Health } from '@overlay/process'
import type { Answer, RequestContext } from '../http/exchange.js'
import { fragment, htmlPage, sendHtml } from '../http/html.js'
import { accepts } from '../http/negotiate.js'
import { send } from '../http/send.js'

interface Check {
  readonly healthy: boolean
  readonly id: string
}

/**
 * Whether this gateway serves and hears the parts that it follows, without reasons: strangers may ask.
 * wire: path and members are those of the original, without its times.
 * differs: if one is not healthy, the status is 503, as monitors expect. The gateway may still be ready.
 */
export function sendHealth(c: RequestContext, { checks }: Health): Answer {
  const states = Object.entries(checks).map(([id, state]) => ({ healthy: state === 'ok', id }))
  const healthy = states.every((state) => state.healthy)
  const status = healthy ? 200 : 503
  if (accepts(c.env.incoming, 'text/html')) return sendHtml(c, pageOf(healthy, states), status)
  c.env.outgoing.setHeader('cache-control', 'no-cache')
  return send(c, status, JSON.stringify({ data: { checks: states, healthy }, meta: {} }))
}

const pageOf = (healthy: boolean, checks: readonly Check[]) =>
  htmlPage(
    healthy ? 'This gateway is healthy' : 'This gateway is not healthy',
    fragment`<table>
<thead><tr><th scope="col">Part</th><th scope="col">State</th></tr></thead>
<tbody>
${checks.map(({ id, healthy }) => fragment`<tr><td>${id}</td><td>${healthy ? 'ok' : 'not healthy'}</td></tr>\n`)}</tbody>
</table>
<p><a href="/">Overview</a></p>`,
  )

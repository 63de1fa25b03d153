import type { IncomingMessage, ServerResponse } from 'node:http'
import type { FaultCode } from '@overlay/rpc'
import type { Context } from 'hono'
import type { Calls } from './calls.js'
import type { Protocol } from './endpoint.js'
import type { Session } from './session.js'

/** What Hono's context carries for one request. */
export interface Env {
  readonly Bindings: { readonly incoming: IncomingMessage; readonly outgoing: ServerResponse }
  readonly Variables: {
    readonly requestId: string
    readonly calls: Calls
    readonly session: Session | undefined
    /** Of the API, where it is not the one with envelopes. */
    readonly protocol: Protocol | undefined
    /** Parsed at the first use: `queryOf`. */
    readonly query: URLSearchParams | undefined
    /** The content type of refusals, where it is not JSON. */
    readonly refusalType: string | undefined
    /** Of the answer, for log and metrics. */
    readonly faultCode: FaultCode | undefined
  }
}

/** One request under way. `c.error` is an unexpected failure, for the log only. */
export type RequestContext = Context<Env>

/** Path parameters, by the names in the table of operations. */
export type Params = Readonly<Record<'id' | 'serviceId', string>>

/** The query as the client sent it. Hono normalizes the URL that its own `c.req.query` reads. */
export function queryOf(c: RequestContext): URLSearchParams {
  const cached = c.get('query')
  if (cached) return cached
  const { url = '' } = c.env.incoming
  const mark = url.indexOf('?')
  const query = new URLSearchParams(mark < 0 ? '' : url.slice(mark + 1))
  c.set('query', query)
  return query
}

import type { Context } from 'hono'
import type { Exchange } from './exchange.js'

/** What Hono's context carries for one request: `c.env`. */
export interface Env {
  readonly Bindings: Exchange
}

/** One request under way. */
export type RequestContext = Context<Env>

/** Path parameters, by the names in the table of operations. */
export type Params = Readonly<Record<'id' | 'serviceId', string>>

/** The query as the client sent it. Hono's own `c.req.query` needs a whole URL, which no request has. */
export function queryOf({ env }: RequestContext): URLSearchParams {
  if (env.query) return env.query
  const { url = '' } = env.incoming
  const mark = url.indexOf('?')
  env.query = new URLSearchParams(mark < 0 ? '' : url.slice(mark + 1))
  return env.query
}

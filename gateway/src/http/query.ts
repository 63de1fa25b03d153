import { isUuid } from '@overlay/model'
import { Fault, invalid } from '@overlay/rpc'
import type { Parameter, RequestContext } from './exchange.js'

/** wire: an empty parameter counts as absent. */
export function checkQuery(c: RequestContext, parameters: readonly Parameter[]): void {
  refuseNul(c)
  if (parameters.length === 0) return
  const query = queryOf(c)
  for (const { name, type, required, oneOf, format, uncheckedWith } of parameters) {
    if (uncheckedWith && query.get(uncheckedWith[0]) === uncheckedWith[1]) continue
    const value = query.get(name)
    if (!value) {
      if (required) throw invalid(name, `${name} in query is required`, value ?? undefined)
      continue
    }
    if (type === 'integer' && !isInt64(value))
      throw invalid(name, `${name} in query must be of type int64: "${value}"`, value)
    if (oneOf && !oneOf.includes(value))
      throw invalid(name, `${name} in query should be one of [${oneOf.join(' ')}]`, value)
    if (format === 'uuid' && !isUuid(value))
      throw invalid(name, `${name} in query must be of type uuid: "${value}"`, value)
  }
}

const isInt64 = (text: string): boolean =>
  /^[+-]?\d{1,19}$/.test(text) &&
  BigInt.asIntN(64, BigInt(text.replace('+', ''))) === BigInt(text.replace('+', ''))

/** Postgres cannot store NUL in text. */
function refuseNul({ env: { incoming } }: RequestContext): void {
  if (incoming.url?.includes('%00'))
    throw new Fault('COULD_NOT_VALIDATE', 'the query must not contain NUL characters')
}

/** The query as the client sent it. Hono's own `c.req.query` needs a whole URL, which no request has. */
export function queryOf({ env }: RequestContext): URLSearchParams {
  if (env.query) return env.query
  const { url = '' } = env.incoming
  const mark = url.indexOf('?')
  env.query = new URLSearchParams(mark < 0 ? '' : url.slice(mark + 1))
  return env.query
}

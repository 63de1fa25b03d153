import { Fault, invalid } from '@overlay/rpc'
import type { RequestContext } from '../http/exchange.js'
import { contentTypeOf, hasBody } from '../http/negotiate.js'
import { queryOf } from '../http/query.js'

export const FORM_TYPE = 'application/x-www-form-urlencoded'

/** Parameters that may have several values. */
const lists = new Set(['configTypes', 'resource', 'audience'])

/**
 * The parameters of a body. wire: a body of another type counts as empty.
 * @throws Fault if one has several values or contains NUL, unless it is among those without a meaning
 */
export function formOf(c: RequestContext, bytes: Buffer, unused: readonly string[] = []): URLSearchParams {
  const { incoming } = c.env
  const form = new URLSearchParams(isForm(incoming) && bytes.length > 0 ? bytes.toString() : '')
  if (unused.length === 0) return checked(form)
  // `delete` takes quadratic time
  return checked(new URLSearchParams([...form].filter(([name]) => !unused.includes(name))))
}

/** The parameters of query and body together, which must not repeat each other. */
export function parametersOf(c: RequestContext, bytes: Buffer): URLSearchParams {
  return checked(new URLSearchParams([...queryOf(c), ...formOf(c, bytes)]))
}

export const queryParametersOf = (c: RequestContext): URLSearchParams => checked(queryOf(c))

const isForm = (incoming: RequestContext['env']['incoming']): boolean =>
  hasBody(incoming) && contentTypeOf(incoming) === FORM_TYPE

function checked(parameters: URLSearchParams): URLSearchParams {
  const names = new Set<string>()
  for (const [name, value] of parameters) {
    // differs: a proxy or a client could read another one than we do
    if (names.has(name) && !lists.has(name)) throw invalid(name, 'a parameter is given more than once')
    // Postgres cannot store NUL in text
    if (value.includes('\0')) throw new Fault('COULD_NOT_VALIDATE', 'a parameter contains NUL')
    names.add(name)
  }
  return parameters
}

/** The value of a parameter. wire: an empty one counts as absent. */
export const parameterOf = (parameters: URLSearchParams, name: string): string | undefined =>
  parameters.get(name) || undefined

/** An id of a login, as it may come back in a header. Anything else names no login. */
export const loginIdOf = (text: string | null | undefined): string =>
  text && /^[\w-]{1,64}$/.test(text) ? text : ''

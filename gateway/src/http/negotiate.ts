import type { IncomingMessage } from 'node:http'
import { invalid } from '@overlay/rpc'
import { MAX_HEADER_ENTRIES, MAX_RANGE_PARAMETERS } from '../limits.js'

const JSON_TYPE = 'application/json'
const JSON_ONLY = [JSON_TYPE]

export function hasBody({ headers }: IncomingMessage): boolean {
  const length = headers['content-length']
  return length === undefined ? headers['transfer-encoding'] !== undefined : length !== '0'
}

/** The type of the body without its parameters. wire: a body without a type counts as a stream of bytes. */
export function contentTypeOf({ headers }: IncomingMessage): string {
  const header = headers['content-type']
  if (header === undefined || header === '') return 'application/octet-stream'
  const end = header.indexOf(';')
  return (end < 0 ? header : header.slice(0, end)).trim().toLowerCase()
}

/** wire: a type that is not supported is a validation error of the header, never a 415. */
export function checkContentType(incoming: IncomingMessage, allowed: readonly string[] = JSON_ONLY): void {
  if (!hasBody(incoming)) return
  const type = contentTypeOf(incoming)
  if (!allowed.includes(type))
    throw invalid(
      'Content-Type',
      `unsupported media type "${type}", only [${allowed.join(' ')}] are allowed`,
      type,
    )
}

/** wire: a validation error of the header too, never a 406; a request with a body is answered whatever it accepts. */
export function checkAccept(incoming: IncomingMessage): void {
  const { accept } = incoming.headers
  if (!hasBody(incoming) && !admits(accept, JSON_TYPE))
    throw invalid('Accept', `unsupported media type requested, only [${JSON_TYPE}] are available`, accept)
}

/** The type of refusals, where the client accepts a type that the operation produces, and not JSON. */
export const refusalTypeOf = (
  { headers: { accept } }: IncomingMessage,
  produces: readonly string[],
): string | undefined =>
  admits(accept, JSON_TYPE) ? undefined : produces.find((type) => admits(accept, type))

function admits(accept: string | undefined, type: string): boolean {
  if (accept === undefined || accept === '*/*' || accept === type || accept === '') return true
  const ranges = new Set(['*/*', `${type.slice(0, type.indexOf('/'))}/*`, type])
  return accept.split(',', MAX_HEADER_ENTRIES).some((range) => {
    const [name = '', ...parameters] = range.split(';', MAX_RANGE_PARAMETERS)
    return (
      ranges.has(name.trim().toLowerCase()) &&
      !parameters.some((parameter) => /^\s*q=0(\.0*)?\s*$/.test(parameter))
    )
  })
}

export const accepts = ({ headers: { accept = '' } }: IncomingMessage, type: string): boolean =>
  accept.split(',', MAX_HEADER_ENTRIES).some((range) => range.split(';', 1)[0]?.trim().toLowerCase() === type)

import type { IncomingMessage } from 'node:http'
import { invalid } from '@overlay/rpc'

const JSON_ONLY = ['application/json']

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

/** wire: a validation error of the header too, never a 406. */
export function checkAccept({ headers: { accept } }: IncomingMessage): void {
  if (accept === undefined || accept === '*/*' || accept === 'application/json' || accept === '') return
  const admits = accept.split(',').some((range) => {
    const [type = '', ...parameters] = range.split(';')
    return (
      /^(\*\/\*|application\/(\*|json))$/i.test(type.trim()) &&
      !parameters.some((parameter) => /^\s*q=0(\.0*)?\s*$/.test(parameter))
    )
  })
  if (!admits)
    throw invalid('Accept', 'unsupported media type requested, only [application/json] are available', accept)
}

export const accepts = ({ headers: { accept = '' } }: IncomingMessage, type: string): boolean =>
  accept.split(',').some((range) => range.split(';')[0]?.trim().toLowerCase() === type)

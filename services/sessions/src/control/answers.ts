import {
  contentType,
  edgeType,
  encodeBool,
  encodeText,
  encodeUint32,
  errorHeader,
  headerKey,
  type Outgoing,
  resultHeader,
} from '@overlay/channel'
import { isAway } from '@overlay/platform/postgres'
import { AccessRefused, accessErrors } from '../access/router-access.js'

const BUSY = 1

/** The answer of requests that have no response of their own. */
export const succeeded = (text = ''): Outgoing => ({
  type: contentType.result,
  headers: new Map([[headerKey.resultSuccess, encodeBool(true)]]),
  body: encodeText(text),
})

/** wire: routers repeat a request that is answered as busy, and slow down. */
export function failed(err: unknown): Outgoing {
  const headers = new Map([[headerKey.resultSuccess, encodeBool(false)]])
  if (isAway(err)) headers.set(resultHeader.errorCode, encodeUint32(BUSY))
  return { type: contentType.result, headers, body: encodeText(textOf(err)) }
}

/** The error message for a request of a client of a router. */
export const refused = (err: unknown): Outgoing => ({
  type: edgeType.error,
  headers: new Map([
    [errorHeader.code, encodeUint32(err instanceof AccessRefused ? err.code : accessErrors.internal)],
  ]),
  body: encodeText(textOf(err)),
})

/** Errors that are not for routers become a text without details. */
export const textOf = (err: unknown): string =>
  err instanceof AccessRefused ? err.message : 'internal error'

/** True if the router was refused: then it has its answer, and there is nothing to log. */
export const isRefusal = (err: unknown): boolean => err instanceof AccessRefused

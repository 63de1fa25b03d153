import {
  contentType,
  edgeErrorCode,
  edgeType,
  encodeBool,
  encodeText,
  encodeUint32,
  errorHeader,
  headerKey,
  type Message,
  type Outgoing,
  resultHeader,
} from '@overlay/channel'
import { isAway } from '@overlay/store/postgres'
import { AccessRefused } from '../domain/router-access.js'
import type { RouterChannel } from './router-channel.js'

/**
 * Answers a request with the result of `work`, or with `failure` of what it throws. Throws what is no refusal, after its
 * answer.
 */
export async function answer(
  router: RouterChannel,
  message: Message,
  failure: (err: unknown, router: RouterChannel) => Outgoing,
  work: () => Promise<Outgoing>,
): Promise<void> {
  const { channel } = router
  let outgoing: Outgoing
  try {
    outgoing = await work()
  } catch (err) {
    channel.reply(message, failure(err, router))
    if (err instanceof AccessRefused) return
    throw err
  }
  channel.reply(message, outgoing)
}

/** The answer of requests that have no response of their own. */
export const succeeded = (text = ''): Outgoing => ({
  type: contentType.result,
  headers: new Map([[headerKey.resultSuccess, encodeBool(true)]]),
  body: encodeText(text),
})

const BUSY = encodeUint32(1)

/** The failure of such a request. wire: error code 1 is BUSY; routers repeat the request, more slowly. */
export const failed = (err: unknown): Outgoing => ({
  type: contentType.result,
  headers: new Map<number, Buffer>([
    [headerKey.resultSuccess, encodeBool(false)],
    ...(isAway(err) ? [[resultHeader.errorCode, BUSY] as const] : []),
  ]),
  body: encodeText(textOf(err)),
})

/** The failure of a request for a client of a router. */
export function refused(err: unknown, { features }: Pick<RouterChannel, 'features'>): Outgoing {
  const { code, circuitId } = err instanceof AccessRefused ? err : { code: edgeErrorCode.internal }
  const headers = new Map<number, Buffer>([[errorHeader.code, encodeUint32(code)]])
  if (features.hasDataModel && circuitId !== undefined)
    headers.set(errorHeader.circuitId, encodeText(circuitId))
  return { type: edgeType.error, headers, body: encodeText(textOf(err)) }
}

/** Routers receive no details of errors that are no refusals. */
export const textOf = (err: unknown): string =>
  err instanceof AccessRefused ? err.message : 'internal error'

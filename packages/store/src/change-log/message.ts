import { type Change, type Changes, MESSAGE_LIMIT_BYTES } from '@overlay/rpc'

const MOST_CHANGES = 500
const MOST_BYTES = 1024 * 1024

/** Limit of one row in its change, as stored: a message that is not yet full has room for it. */
export const MOST_CHANGE_BYTES = 4 * 1024 * 1024

/** True when so many changes fill a message. */
export const isFull = (count: number, bytes: number): boolean => count >= MOST_CHANGES || bytes >= MOST_BYTES

/** Earlier releases may have stored larger rows. */
const MOST_SENT_BYTES = MESSAGE_LIMIT_BYTES - 2 * MOST_BYTES

/** How many of the changes one message covers that contains only those of the filter. */
export function leading(changes: readonly Change[], isIncluded: (change: Change) => boolean): number {
  let [count, bytes] = [0, 0]
  for (const change of changes) {
    count += 1
    if (isIncluded(change) && change.json.length <= MOST_SENT_BYTES) bytes += change.json.length
    if (isFull(count, bytes)) break
  }
  return count
}

/** The changes as members of a message. */
export function sendable(changes: readonly Change[]): Pick<Changes, 'changes' | 'oversized'> {
  const oversized = changes.flatMap(({ json }, at) => (json.length > MOST_SENT_BYTES ? [at] : []))
  const sent = [...changes]
  for (const at of oversized) {
    const change = sent[at]
    if (change) sent[at] = { ...change, json: Buffer.alloc(0) }
  }
  return { changes: sent, oversized }
}

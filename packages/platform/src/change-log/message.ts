import { type Change, type Changes, MESSAGE_LIMIT_BYTES } from '@overlay/rpc'

const MOST_CHANGES = 500
const MOST_BYTES = 1024 * 1024

/** What one row may take, as its change is stored: a message has room for it behind all that does not fill one. */
export const MOST_CHANGE_BYTES = 4 * 1024 * 1024

/** What fills one message. */
export const isFull = (count: number, bytes: number): boolean => count >= MOST_CHANGES || bytes >= MOST_BYTES

/** Larger ones may have been stored by an earlier release. */
const MOST_SENT_BYTES = MESSAGE_LIMIT_BYTES - 2 * MOST_BYTES

/** How many of the changes go into one message that has only the wanted ones. */
export function leading(changes: readonly Change[], isWanted: (change: Change) => boolean): number {
  let [count, bytes] = [0, 0]
  for (const change of changes) {
    count += 1
    if (isWanted(change) && change.json.length <= MOST_SENT_BYTES) bytes += change.json.length
    if (isFull(count, bytes)) break
  }
  return count
}

/** The changes as a message has them. */
export function sendable(changes: readonly Change[]): Pick<Changes, 'changes' | 'oversized'> {
  const oversized = changes.flatMap(({ json }, at) => (json.length > MOST_SENT_BYTES ? [at] : []))
  const sent = [...changes]
  for (const at of oversized) {
    const change = sent[at]
    if (change) sent[at] = { ...change, json: Buffer.alloc(0) }
  }
  return { changes: sent, oversized }
}

import type { Change } from '@overlay/rpc'

const MOST_CHANGES = 500
const MOST_BYTES = 1024 * 1024

/** What one row may take, as its change is stored: a message has room for it behind all that does not fill one. */
export const MOST_CHANGE_BYTES = 4 * 1024 * 1024

/** What fills one message. */
export const isFull = (count: number, bytes: number): boolean => count >= MOST_CHANGES || bytes >= MOST_BYTES

/** As many as go into one message. */
export function leading(changes: readonly Change[]): Change[] {
  let [count, bytes] = [0, 0]
  for (const { json } of changes) {
    count += 1
    bytes += json.length
    if (isFull(count, bytes)) break
  }
  return changes.slice(0, count)
}

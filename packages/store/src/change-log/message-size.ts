import { type Change, Fault } from '@overlay/rpc'
import sql from 'sql-template-tag'
import { MESSAGE_BYTES, MESSAGE_CHANGES, MOST_CHANGE_BYTES } from '../limits.js'
import { type Db, onlyRow } from '../postgres/database.js'

/** True when so many changes fill a message. */
export const isFull = (count: number, bytes: number): boolean =>
  count >= MESSAGE_CHANGES || bytes >= MESSAGE_BYTES

/** How many of the changes one message covers that contains only those of the filter. */
export function leading(changes: readonly Change[], isIncluded: (change: Change) => boolean): number {
  let [count, bytes] = [0, 0]
  for (const change of changes) {
    count += 1
    if (isIncluded(change)) bytes += change.json.length
    if (isFull(count, bytes)) break
  }
  return count
}

/** The database expands numbers that JSON abbreviates: six characters become more than three hundred. */
const MOST_GROWTH = 64

/** Refuses a change that fits no message: it would stop all followers of its schema. */
export async function refuseTooLarge(
  db: Db,
  { kind, id, payload }: { readonly kind: string; readonly id: string; readonly payload: string | undefined },
): Promise<void> {
  if (payload === undefined || Buffer.byteLength(payload) * MOST_GROWTH <= MOST_CHANGE_BYTES) return
  const { rows } = await db.query<{ bytes: number }>(
    sql`select octet_length(${payload}::jsonb::text) as bytes`,
    'size-of-change',
  )
  const { bytes } = onlyRow(rows)
  if (bytes > MOST_CHANGE_BYTES)
    throw new Fault(
      'COULD_NOT_VALIDATE',
      `${kind} ${id} would take ${bytes} bytes, a row may take ${MOST_CHANGE_BYTES}`,
    )
}

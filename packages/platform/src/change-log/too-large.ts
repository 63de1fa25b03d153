import { Fault } from '@overlay/rpc'
import sql from 'sql-template-tag'
import { type Db, onlyRow } from '../postgres/database.js'
import { MOST_CHANGE_BYTES } from './message.js'

/** The database writes out what JSON abbreviates: six characters of a number become more than three hundred. */
const MOST_GROWTH = 64

/** A change that fits no message would stop all who follow its schema: it is refused before it is written. */
export async function refuseTooLarge(
  db: Db,
  { kind, id, told }: { readonly kind: string; readonly id: string; readonly told: string | undefined },
): Promise<void> {
  if (told === undefined || Buffer.byteLength(told) * MOST_GROWTH <= MOST_CHANGE_BYTES) return
  const { rows } = await db.query<{ bytes: number }>(
    sql`select octet_length(${told}::jsonb::text) as bytes`,
    'size-of-change',
  )
  const { bytes } = onlyRow(rows)
  if (bytes > MOST_CHANGE_BYTES)
    throw new Fault(
      'COULD_NOT_VALIDATE',
      `${kind} ${id} would take ${bytes} bytes, a row may take ${MOST_CHANGE_BYTES}`,
    )
}

import { ownContext } from '@overlay/rpc'
import sql, { type Sql } from 'sql-template-tag'
import type { LoadedRows } from '../change-log/loaded-rows.js'
import type { Tx } from '../postgres/database.js'
import type { Names } from './seams.js'

const ASKED_AT_ONCE = 500
const NAMES_MS = 30_000

/**
 * The ids in our rows whose entities were deleted while their changes were not followed. The load lacks them, and their
 * owner confirms that they do not exist: an entity that is newer than the load is not among its rows either.
 */
export async function deletedSince(
  tx: Tx,
  names: Names,
  kind: string,
  rows: LoadedRows,
  named: Sql,
): Promise<string[]> {
  const { rows: missing } = await tx.query<{ id: string }>(
    sql`select id from (${named}) as named where id not in (${rows.ids(kind)}) order by id`,
  )
  const gone: string[] = []
  for (let from = 0; from < missing.length; from += ASKED_AT_ONCE) {
    const ids = missing.slice(from, from + ASKED_AT_ONCE).map(({ id }) => id)
    const living = await names(kind, ids, ownContext(AbortSignal.timeout(NAMES_MS)))
    for (const id of ids) if (!living.has(id)) gone.push(id)
  }
  return gone
}

import { pagesOf } from '@overlay/process/async'
import { ownContext } from '@overlay/rpc'
import sql, { type Sql } from 'sql-template-tag'
import type { LoadedRows } from '../change-log/loaded-rows.js'
import { IDS_CALL_MS, IDS_PER_CALL } from '../limits.js'
import type { Tx } from '../postgres/database.js'
import type { Names } from './seams.js'

/**
 * The referenced ids whose entities were deleted while their changes were not followed. The load lacks them, and the
 * owner confirms that they do not exist: entities that are newer than the load are missing in it too.
 */
export async function deletedSince(
  tx: Tx,
  names: Names,
  kind: string,
  rows: LoadedRows,
  referenced: Sql,
): Promise<string[]> {
  const { rows: missing } = await tx.query<{ id: string }>(
    sql`select id from (${referenced}) as referenced where id not in (${rows.ids(kind)}) order by id`,
  )
  const deleted: string[] = []
  for (const page of pagesOf(missing, IDS_PER_CALL)) {
    const ids = page.map(({ id }) => id)
    const existing = await names(kind, ids, ownContext(AbortSignal.timeout(IDS_CALL_MS)))
    for (const id of ids) if (!existing.has(id)) deleted.push(id)
  }
  return deleted
}

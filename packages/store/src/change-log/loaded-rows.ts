import { randomUUID } from 'node:crypto'
import type { Change } from '@overlay/rpc'
import sql, { type Sql } from 'sql-template-tag'
import { PAGE_ROWS } from '../limits.js'
import type { Tx } from '../postgres/database.js'

/** All rows of one load. They are in a table, as there may be a million; only its transaction sees them. */
export interface LoadedRows {
  /** Selects the ids of a kind, for statements of the same transaction: `id not in (...)`. */
  ids(kind: string): Sql
  /** The rows of a kind by id, in pages, without rows that their owner could not send. */
  pages(kind: string): AsyncIterable<readonly Change[]>
}

/** Stores the pages, runs `work`, and deletes them. */
export async function withLoadedRows<T>(
  tx: Tx,
  pages: AsyncIterable<readonly Change[]> | Iterable<readonly Change[]>,
  work: (loaded: LoadedRows) => Promise<T>,
): Promise<T> {
  const load = randomUUID()
  for await (const rows of pages) {
    await tx.query(
      sql`
      insert into loaded_row (load, kind, id, json)
      select ${load}, * from unnest(${rows.map(({ kind }) => kind)}::text[], ${rows.map(({ id }) => id)}::text[],
                                    ${rows.map(({ json }) => Buffer.from(json).toString())}::text[])
          on conflict do nothing`,
      'store-loaded',
    )
  }
  const result = await work({
    ids: (kind) => sql`select id from loaded_row where load = ${load} and kind = ${kind}`,
    async *pages(kind) {
      for (let last = ''; ; ) {
        const { rows } = await tx.query<{ id: string; json: string }>(
          sql`
          select id, json from loaded_row
           where load = ${load} and kind = ${kind} and id > ${last} and json <> '' order by id limit ${PAGE_ROWS}`,
          'read-loaded',
        )
        if (rows.length > 0)
          yield rows.map(({ id, json }) => ({ kind, id, json: Buffer.from(json), atMs: 0, number: 0 }))
        if (rows.length < PAGE_ROWS) return
        last = rows.at(-1)?.id ?? last
      }
    },
  })
  await tx.query(sql`delete from loaded_row where load = ${load}`)
  return result
}

import type { Entity } from '@overlay/model'
import sql, { type Sql } from 'sql-template-tag'
import type { Loaders } from '../change-log/local-source.js'
import type { Db } from '../postgres/database.js'
import type { Kind } from './kind.js'
import { columnsOf, plainOf, rowOf, tableOf } from './row.js'

const PAGE_ROWS = 1000

/** For followers: the rows of each followed kind as their changes show them, in the order of ids. */
export const loadersOf = (db: Db, kinds: readonly Pick<Kind, 'entity' | 'followedRows'>[]): Loaders =>
  Object.fromEntries(
    kinds
      .filter(({ entity }) => entity.followed)
      .map(({ entity, followedRows = sql`true` }) => [
        entity.kind,
        (ids?: readonly string[]) => allRows(db, entity, followedRows, ids),
      ]),
  )

async function* allRows(
  db: Db,
  entity: Entity,
  condition: Sql,
  ids: readonly string[] | undefined,
): AsyncIterable<{ id: string; json: object }> {
  const ofIds = ids ? sql`id = any(${ids})` : sql`true`
  for (let last = ''; ; ) {
    const { rows } = await db.query(sql`
      select ${columnsOf(entity)} from ${tableOf(entity)}
       where id > ${last} and ${condition} and ${ofIds} order by id limit ${PAGE_ROWS}`)
    for (const stored of rows) {
      const row = rowOf(entity, stored)
      yield { id: row.id, json: plainOf(entity, row) }
    }
    if (rows.length < PAGE_ROWS) return
    last = String(rows.at(-1)?.id)
  }
}

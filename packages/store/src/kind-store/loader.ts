import type { Entity } from '@overlay/model'
import type { QueryResultRow } from 'pg'
import sql, { type Sql } from 'sql-template-tag'
import type { Loaders } from '../change-log/local-source.js'
import type { Db } from '../postgres/database.js'
import { allPages } from './all-pages.js'
import type { Kind } from './kind.js'
import { columnsOf, plainOf, rowOf, tableOf } from './row.js'

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
  const all = allPages<QueryResultRow>((last, limit) =>
    db.query(sql`
      select ${columnsOf(entity)} from ${tableOf(entity)}
       where id > ${last?.id ?? ''} and ${condition} and ${ofIds} order by id limit ${limit}`),
  )
  for await (const stored of all) {
    const row = rowOf(entity, stored)
    yield { id: row.id, json: plainOf(entity, row) }
  }
}

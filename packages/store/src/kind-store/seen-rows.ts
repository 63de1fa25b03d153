import { type Entity, storedBytes } from '@overlay/model'
import type { QueryResultRow } from 'pg'
import sql, { type Sql } from 'sql-template-tag'
import { batch } from '../postgres/batch.js'
import type { Db } from '../postgres/database.js'
import { type AnyRow, columnsOf, rowOf, tableOf } from './row.js'

/** A row as it was when it was read or written. */
export interface SeenRow {
  readonly row: AnyRow
  /** That of `versionOf`. */
  readonly version: string
}

/**
 * Rows that this replica has read or written lately. They may be out of date: a statement that relies on one compares its
 * version.
 */
export interface SeenRows {
  /** From memory or, together with others, from the database. Undefined: there is no row. */
  find(entity: Entity, id: string): Promise<SeenRow | undefined>
  /** `bytes`: about its size. */
  keep(entity: Entity, seen: SeenRow, bytes: number): void
  forget(entity: Entity, id: string): void
}

const MOST_ROWS = 1000
const MOST_BYTES = 16 * 1024 // of a row that is kept

/** The transaction that wrote a row, as SQL. */
export const version = sql`xmin::text`

/**
 * What another server does not repeat, in SQL: after a failover that has lost commits, and in a restored copy, other
 * transactions get the same numbers. The timeline of the change log changes with the next append, that of the
 * write-ahead log at once.
 */
const history = sql`
  (select timeline::text || case when wal is null then '' else left(pg_walfile_name(pg_current_wal_lsn()), 8) end
     from stream)`

/** The version of a row of this table, as SQL. Equal versions are of equal rows. */
export const versionOf = (table: Sql): Sql => sql`(${history} || ' ' || ${table}.xmin::text)`
/** In place of a version, for what depends on no other row. */
export const rowAlone = sql`null`

export function openSeenRows(db: Db): SeenRows {
  const rows = new Map<string, SeenRow>() // the oldest first
  const readers = new Map<Entity, (id: string) => Promise<SeenRow | undefined>>()
  const keyOf = ({ kind }: Entity, id: string): string => `${kind} ${id}`

  function readerFor(entity: Entity): (id: string) => Promise<SeenRow | undefined> {
    let reader = readers.get(entity)
    if (!reader) {
      reader = batch((ids) => read(db, entity, ids))
      readers.set(entity, reader)
    }
    return reader
  }

  function keep(entity: Entity, seen: SeenRow, bytes: number): void {
    const key = keyOf(entity, seen.row.id)
    rows.delete(key)
    if (bytes > MOST_BYTES) return
    rows.set(key, seen)
    const [oldest] = rows.keys()
    if (rows.size > MOST_ROWS && oldest !== undefined) rows.delete(oldest)
  }

  return {
    keep,
    async find(entity, id) {
      const known = rows.get(keyOf(entity, id))
      if (known) return known
      const seen = await readerFor(entity)(id)
      if (seen) keep(entity, seen, storedBytes(seen.row))
      return seen
    },
    forget: (entity, id) => rows.delete(keyOf(entity, id)),
  }
}

async function read(
  db: Db,
  entity: Entity,
  ids: readonly string[],
): Promise<readonly (SeenRow | undefined)[]> {
  const { rows } = await db.query<QueryResultRow & { id: string; version: string }>(
    sql`select ${columnsOf(entity)}, ${versionOf(tableOf(entity))} as version from ${tableOf(entity)} where id = any(${ids})`,
    `read-${entity.kind}`,
  )
  const seen = new Map(rows.map((row) => [row.id, { row: rowOf(entity, row), version: row.version }]))
  return ids.map((id) => seen.get(id))
}

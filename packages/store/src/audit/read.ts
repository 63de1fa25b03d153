import type { Filter } from '@overlay/model'
import sql, { join, raw, type Sql } from 'sql-template-tag'
import { whereOf } from '../kind-store/where.js'
import { AUDIT_PAGE_BYTES } from '../limits.js'
import { type Db, ofClients, onlyRow, type Tx } from '../postgres/database.js'
import type { SchemaCursor } from './cursor.js'
import { entityTypeOf, eventJson, type StoredChange } from './event.js'
import { auditSymbols, entityName } from './filter.js'

/** A change of one schema. */
export interface SchemaChange extends SchemaCursor {
  readonly entityType: string
  /** The event. */
  readonly json: string
}

export interface ChangeQuery {
  readonly where: Filter
  /** Only changes behind this cursor in the order of the list. Absent: from its beginning. */
  readonly behind?: SchemaCursor | undefined
  /** Only changes before this time. */
  readonly beforeMs?: number | undefined
  readonly oldestFirst: boolean
  readonly limit: number
}

export interface ChangePage {
  readonly changes: readonly SchemaChange[]
  /** No further changes match. */
  readonly isComplete: boolean
}

const columns = sql`
  id, at, kind, entity_id as "entityId", ${raw(entityName)} as "entityName", request_id as "requestId",
  identity_id as "identityId", identity_name as "identityName", source_address as "sourceAddress",
  coalesce(after, before) ->> 'routerId' as "routerId", before::text, after::text`

const bytes = sql`coalesce(octet_length(before), 0) + coalesce(octet_length(after), 0)`

/** A page of the audit of the schema of `db`: as many changes as fit a message, at least one. */
export async function readChanges(db: Db, schema: string, query: ChangeQuery): Promise<ChangePage> {
  const { oldestFirst, limit } = query
  const direction = oldestFirst ? sql`` : sql` desc`
  const order = sql`at${direction}, id${direction}`
  const { rows } = await db.query<StoredChange & { found: number }>(
    sql`
    with page as (
         select ${columns} from audit ${selected(query, direction)} limit ${limit}),
         measured as (
         select *, count(*) over ()::int as found, sum(${bytes}) over (order by ${order}) - (${bytes}) as bytes_before
           from page)
  select * from measured where bytes_before < ${AUDIT_PAGE_BYTES} order by ${order}`,
    ofClients,
  )
  const found = rows[0]?.found ?? 0
  return {
    changes: rows.map((row) => changeOf(schema, row)),
    isComplete: found < limit && rows.length === found,
  }
}

/** The conditions and the order. */
function selected({ where, behind, beforeMs, oldestFirst }: ChangeQuery, direction: Sql): Sql {
  const anchor = anchorOf(where)
  const beyond = oldestFirst ? sql`>` : sql`<`
  const place = behind && sql`${new Date(behind.atMs)}::timestamptz, ${behind.id}::int8`
  const until = beforeMs === undefined ? [] : [sql`at < ${new Date(beforeMs)}`]
  if (!anchor) {
    const range = place ? [sql`(at, id) ${beyond} (${place})`] : []
    const conditions = [whereOf(where, auditSymbols), ...range, ...until]
    return sql`where ${join(conditions, ' and ')} order by at${direction}, id${direction}`
  }
  const { column, value, rest } = anchor
  const range = place
    ? sql`(${column}, at, id) ${beyond} (${value}, ${place}) and ${column} ${oldestFirst ? sql`<=` : sql`>=`} ${value}`
    : sql`${column} >= ${value} and ${column} <= ${value}`
  const conditions = [range, ...rest.map((term) => whereOf(term, auditSymbols)), ...until]
  return sql`
          where ${join(conditions, ' and ')}
          order by ${column}${direction}, at${direction}, id${direction}`
}

const anchors: ReadonlyMap<string, Sql> = new Map([
  ['entityId', sql`entity_id`],
  ['authorId', sql`identity_id`],
])

/**
 * The entity or the author that all changes of the filter have. As a range and in the order, not as an equation: else
 * the planner may choose the index by time, and read all that is newer than the changes of this author.
 */
function anchorOf(where: Filter): { column: Sql; value: string; rest: readonly Filter[] } | undefined {
  const terms = where.op === 'and' ? where.terms : [where]
  for (const term of terms) {
    if (term.op !== '=' || term.of || term.linked || typeof term.value !== 'string') continue
    const column = anchors.get(term.symbol)
    if (column) return { column, value: term.value, rest: terms.filter((other) => other !== term) }
  }
  return undefined
}

/** Undefined: there is no such change, or it is past its retention. */
export async function readChange(db: Db, schema: string, id: number): Promise<SchemaChange | undefined> {
  const { rows } = await db.query<StoredChange>(
    sql`select ${columns} from audit where id = ${id}`,
    'audited-change',
  )
  const [row] = rows
  return row && changeOf(schema, row)
}

const changeOf = (schema: string, row: StoredChange): SchemaChange => ({
  atMs: row.at.getTime(),
  id: row.id,
  entityType: entityTypeOf(row.kind),
  json: eventJson(schema, row),
})

/**
 * The time before which no commit can add a change any more. Writers lock the table before they read the clock, so those
 * that hold no lock yet write later times, and those that hold one write none before the begin of their transaction. If
 * the begin is hidden, because the writer has another role, nothing is settled until it ends.
 * Changes must be read in a later statement, which sees what has been committed meanwhile.
 */
export async function settledMs(tx: Tx): Promise<number> {
  const { rows } = await tx.query<{ ms: number }>(
    sql`
    select floor(extract(epoch from least(statement_timestamp(), min(coalesce(a.xact_start, to_timestamp(0)))))
                 * 1000)::float8 as ms
      from pg_locks l left join pg_stat_activity a using (pid)
     where l.relation = 'audit'::regclass and l.mode = 'RowExclusiveLock' and l.granted
       and l.database = (select oid from pg_database where datname = current_database())`,
    'audit-settled',
  )
  return onlyRow(rows).ms
}

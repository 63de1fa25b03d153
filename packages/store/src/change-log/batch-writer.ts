import type { Change, Position } from '@overlay/rpc'
import sql, { type Sql } from 'sql-template-tag'
import { batch } from '../postgres/batch.js'
import type { Actor } from './append.js'
import type { ChangeLog } from './change-log.js'
import { headFor } from './head-for.js'
import { refuseTooLarge } from './too-large.js'

/** The write of one row by one request. */
export interface RowWrite {
  readonly id: string
  /** The row in the audit, as JSON. Absent: it did not exist. */
  readonly before?: string | undefined
  /** The row in the audit and for followers, as JSON without its times. Absent: it is deleted. */
  readonly after?: string | undefined
  /** Members that only followers get, as JSON. */
  readonly extra?: string | undefined
  readonly by: Actor
  /** The batch rejects a write that has not begun by then with TIMEOUT. */
  readonly deadline?: Date | undefined
}

/** A row that was written, with its place in the change log. */
export interface WrittenRow {
  readonly id: string
  /** Null: the row is deleted. */
  readonly createdAt: Date | null
  readonly updatedAt: Date | null
  /** As the statement returns it. */
  readonly version: string | null
  /** Undefined: the kind is not followed. */
  readonly position: Position | undefined
}

interface Definition<W> {
  readonly kind: string
  /** Of the prepared statement. Absent: it is prepared when it is used often. */
  readonly name?: string | undefined
  /** Absent: the kind is followed. */
  readonly followed?: boolean
  /** The result of a write in whose batch another one has the same id. Absent: undefined. */
  readonly repeated?: 'shares the result'
  /**
   * Common table expressions that write the rows. The last one, `written`, has the columns id, created_at, updated_at
   * and version of the rows that were written, each at most once; a row may be left out. Whatever it locks, it must lock
   * before `written` is complete: then the counter of the change log is locked until the commit.
   */
  write(entries: readonly W[]): Sql
}

/**
 * For writes of single rows without a transaction of their own: writes the rows that wait in a replica in one statement
 * and one round trip, with their audit and change rows. The write resolves to undefined where the statement leaves its
 * row out. A write that fails is repeated alone, so that it harms no other.
 *
 * Use `batchInserter` and `batchRemover` for plain inserts and deletes. Uniform kinds are written by kind-store.
 */
export function batchWriter<W extends RowWrite>(
  changeLog: ChangeLog,
  { kind, name, followed = true, repeated, write }: Definition<W>,
): (row: W) => Promise<WrittenRow | undefined> {
  const writeBatch = batch<W, WrittenRow | undefined>(
    async (entries) => {
      // each row has one number: of several entries with one id the first counts
      const byId = new Map<string, W>()
      for (const entry of entries) if (!byId.has(entry.id)) byId.set(entry.id, entry)
      const first = byId.size === entries.length ? entries : [...byId.values()]
      const { rows } = await changeLog.db.query<Returned>(
        statement(kind, followed, write(first), first),
        name,
      )
      const last = rows.at(-1)
      if (last && followed)
        changeLog.appended(
          positionOf(last),
          rows.map((row) => changeOf(kind, byId.get(row.id), row)),
        )
      const written = new Map(rows.map((row) => [row.id, writtenRow(row, followed)]))
      return entries.map((entry) =>
        repeated || byId.get(entry.id) === entry ? written.get(entry.id) : undefined,
      )
    },
    { deadlineOf: ({ deadline }) => deadline },
  )
  return async (row) => {
    const { id, after, extra } = row
    if (after !== undefined && followed) {
      const payload = extra === undefined ? after : joined(after, extra)
      await refuseTooLarge(changeLog.db, { kind, id, payload }) // before others share its statement
    }
    return writeBatch(row)
  }
}

interface Returned {
  readonly id: string
  readonly createdAt: Date | null
  readonly updatedAt: Date | null
  readonly version: string | null
  readonly number: number
  readonly timeline: string
  readonly at: Date
}

const positionOf = ({ timeline, number }: Returned): Position => ({ timeline, number })

const writtenRow = (row: Returned, followed: boolean): WrittenRow => ({
  id: row.id,
  createdAt: row.createdAt,
  updatedAt: row.updatedAt,
  version: row.version,
  position: followed ? positionOf(row) : undefined,
})

/** One JSON object of two that have members. */
const joined = (one: string, other: string): string => `${one.slice(0, -1)},${other.slice(1)}`

function changeOf(kind: string, write: RowWrite | undefined, row: Returned): Change {
  const { id, createdAt, updatedAt, at, number } = row
  return { kind, id, json: Buffer.from(contentOf(write, createdAt, updatedAt)), atMs: at.getTime(), number }
}

function contentOf(write: RowWrite | undefined, createdAt: Date | null, updatedAt: Date | null): string {
  if (write?.after === undefined) return ''
  const { after, extra } = write
  return joined(extra === undefined ? after : joined(after, extra), JSON.stringify({ createdAt, updatedAt }))
}

/** Assembled of JSON, because the path is hot. */
function entryOf({ id, before, after, extra, by }: RowWrite): string {
  const { caller, requestId, sourceAddress } = by
  const author = {
    id,
    identity_id: caller.identityId,
    identity_name: caller.identityName,
    source_address: sourceAddress,
    request_id: requestId,
  }
  let entry = JSON.stringify(author).slice(0, -1)
  if (before !== undefined) entry += `,"before":${before}`
  if (after !== undefined) entry += `,"plain":${after}`
  if (extra !== undefined) entry += `,"extra":${extra}`
  return `${entry}}`
}

const times = sql`
  jsonb_build_object('createdAt', to_char(created_at at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'),
                     'updatedAt', to_char(updated_at at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'))`

const noHead = sql`
         head as (select null::uuid as timeline, null::bigint as start, clock_timestamp()::timestamptz(3) as at)`

/** The counter comes last: from its lock until the commit all other writers of the schema wait. */
function statement(kind: string, followed: boolean, write: Sql, entries: readonly RowWrite[]): Sql {
  const changed = sql`,
         changed as (
         insert into change (number, kind, entity_id, entity, at)
         select number, ${kind}, id, case when extra is null then after else after || extra end, at from row)`
  return sql`
    with ${write},
         ${followed ? headFor('written') : noHead},
         row as materialized (
         select id, created_at, updated_at, version, before, plain || times as after, extra, identity_id,
                identity_name, source_address, request_id, timeline, at,
                start + row_number() over (order by place) as number
           from rows from (jsonb_to_recordset(${`[${entries.map(entryOf).join()}]`}::jsonb)
                as (id text, before jsonb, plain jsonb, extra jsonb, identity_id text, identity_name text,
                    source_address text, request_id text))
                with ordinality as list (
                id, before, plain, extra, identity_id, identity_name, source_address, request_id, place)
           join written using (id)
          cross join head
          cross join lateral ${times} as times),
         audited as (
         insert into audit (number, kind, entity_id, before, after, identity_id, identity_name, source_address,
                            request_id, at)
         select number, ${kind}, id, before, after, identity_id, identity_name, source_address, request_id, at
           from row)${followed ? changed : sql``}
  select id, created_at as "createdAt", updated_at as "updatedAt", version, number, timeline, at
    from row order by number`
}

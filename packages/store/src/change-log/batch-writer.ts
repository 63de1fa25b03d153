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

interface Definition<W> {
  /** It is followed. */
  readonly kind: string
  /** Of the prepared statement. */
  readonly name: string
  /**
   * Common table expressions that write the rows. The last one, `written`, has the columns id, created_at and updated_at
   * of the rows that were written, each at most once; a row may be left out. Whatever it locks, it must lock before
   * `written` is complete: then the counter of the change log is locked until the commit.
   */
  write(entries: readonly W[]): Sql
}

/**
 * For creates on hot paths, by `batchInserter`: writes the rows that wait in a replica in one statement and one round
 * trip, with their audit and change rows. The write resolves to undefined where the statement leaves its row out. Writes
 * with the same id share the result. A write that fails is repeated alone, so that it harms no other.
 */
export function batchWriter<W extends RowWrite>(
  changeLog: ChangeLog,
  { kind, name, write }: Definition<W>,
): (row: W) => Promise<Position | undefined> {
  const writeBatch = batch<W, Position | undefined>(
    async (entries) => {
      const byId = new Map<string, W>() // each row has one number
      for (const entry of entries) if (!byId.has(entry.id)) byId.set(entry.id, entry)
      const first = [...byId.values()]
      const { rows } = await changeLog.db.query<Returned>(statement(kind, write(first), first), name)
      const last = rows.at(-1)
      if (last)
        changeLog.appended(
          positionOf(last),
          rows.map((row) => changeOf(kind, byId.get(row.id), row)),
        )
      const positions = new Map(rows.map((row) => [row.id, positionOf(row)]))
      return entries.map(({ id }) => positions.get(id))
    },
    { deadlineOf: ({ deadline }) => deadline },
  )
  return async (row) => {
    const { id, after, extra } = row
    if (after !== undefined) {
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
  readonly number: number
  readonly timeline: string
  readonly at: Date
}

const positionOf = ({ timeline, number }: Returned): Position => ({ timeline, number })

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

/** The counter comes last: from its lock until the commit all other writers of the schema wait. */
const statement = (kind: string, write: Sql, entries: readonly RowWrite[]): Sql => sql`
    with ${write},
         ${headFor('written')},
         row as materialized (
         select id, created_at, updated_at, before, plain || times as after, extra, identity_id,
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
           from row),
         changed as (
         insert into change (number, kind, entity_id, entity, at)
         select number, ${kind}, id, case when extra is null then after else after || extra end, at from row)
  select id, created_at as "createdAt", updated_at as "updatedAt", number, timeline, at
    from row order by number`

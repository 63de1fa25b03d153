import type { Change, Position } from '@overlay/rpc'
import sql, { type Sql } from 'sql-template-tag'
import { batch } from '../postgres/batch.js'
import type { Actor } from './append.js'
import type { ChangeLog } from './change-log.js'
import { headFor } from './numbers.js'
import { refuseTooLarge } from './too-large.js'

/** A row to insert. */
export interface NewRow {
  readonly id: string
  /** By the names of the table, the id among them. */
  readonly columns: object
  /** The row in the audit and in the payload, without its times. */
  readonly plain: object
  /** Members that only the payload has. */
  readonly payload?: object | undefined
  readonly by: Actor
}

/** A row and its place in the change log. */
export interface Numbered {
  readonly id: string
  readonly number: number
  readonly timeline: string
  readonly at: Date
}

interface Inserted extends Numbered {
  readonly createdAt: Date
}

/**
 * For creates on hot paths: inserts the rows that wait in a replica in one statement, with their audit and change rows.
 * `insert` selects from a JSON list of columns and may leave rows out. Those have no position.
 */
export function batchInserter(
  changeLog: ChangeLog,
  kind: string,
  insert: (list: string) => Sql,
): (row: NewRow) => Promise<Position | undefined> {
  const insertBatch = batch<Entry, Inserted | undefined>(async (entries) => {
    // each row has one number: of several entries with one id the first counts
    const byId = new Map<string, Entry>()
    for (const entry of entries) if (!byId.has(entry.id)) byId.set(entry.id, entry)
    const { rows } = await changeLog.db.query<Inserted>(
      statement(kind, insert, [...byId.values()]),
      `create-${kind}`,
    )
    const last = rows.at(-1)
    if (last) changeLog.appended(positionOf(last), changesOf(kind, byId, rows))
    const inserted = new Map(rows.map((row) => [row.id, row]))
    return entries.map(({ id }) => inserted.get(id))
  })
  return async (row) => {
    const plain = JSON.stringify(row.plain)
    const payload = row.payload ? JSON.stringify({ ...row.plain, ...row.payload }) : plain
    await refuseTooLarge(changeLog.db, { kind, id: row.id, payload }) // before others share its statement
    const inserted = await insertBatch(entryOf(row, plain, payload))
    return inserted && positionOf(inserted)
  }
}

export const positionOf = ({ timeline, number }: Numbered): Position => ({ timeline, number })

/** Each part is serialized once: the path is hot. */
interface Entry {
  readonly id: string
  readonly columns: object
  readonly payload: string
  /** The row as the statement reads it. */
  readonly text: string
}

function entryOf({ id, columns, by }: NewRow, plain: string, whole: string): Entry {
  const payload = withMember(whole, 'isNew', true) // nothing refers to a new row yet: followers may skip it
  const author = JSON.stringify(authorOf(by))
  return {
    id,
    columns,
    payload,
    text: `{"id":${JSON.stringify(id)},"plain":${plain},"payload":${payload},${author.slice(1)}`,
  }
}

/** By the columns of the audit. */
export const authorOf = ({ caller, requestId, sourceAddress }: Actor) => ({
  identity_id: caller.identityId,
  identity_name: caller.identityName,
  source_address: sourceAddress,
  request_id: requestId,
})

/** The JSON object, which has members already, with one more. */
const withMember = (object: string, name: string, value: unknown): string =>
  `${object.slice(0, -1)},${JSON.stringify(name)}:${JSON.stringify(value)}}`

/** The counter comes last: from its lock until the commit all other writers of the schema wait. */
function statement(kind: string, insert: (list: string) => Sql, entries: readonly Entry[]): Sql {
  const columns = JSON.stringify(entries.map(({ columns }) => columns))
  const list = `[${entries.map(({ text }) => text).join()}]`
  return sql`
    with inserted as (${insert(columns)} returning id, created_at),
         ${headFor('inserted')},
         row as materialized (
         select id, created_at, plain, payload, identity_id, identity_name, source_address, request_id, timeline, at,
                start + row_number() over (order by place) as number,
                jsonb_build_object('createdAt', time, 'updatedAt', time) as times
           from rows from (jsonb_to_recordset(${list}::jsonb)
                as (id text, plain jsonb, payload jsonb, identity_id text, identity_name text, source_address text,
                    request_id text))
                with ordinality as list (
                id, plain, payload, identity_id, identity_name, source_address, request_id, place)
           join inserted using (id)
          cross join head
          cross join to_char(created_at at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') as time),
         audited as (
         insert into audit (number, kind, entity_id, after, identity_id, identity_name, source_address, request_id, at)
         select number, ${kind}, id, plain || times, identity_id, identity_name, source_address, request_id, at
           from row),
         changed as (
         insert into change (number, kind, entity_id, entity, at)
         select number, ${kind}, id, payload || times, at from row)
  select id, created_at as "createdAt", number, timeline, at from row order by number`
}

function changesOf(kind: string, entries: ReadonlyMap<string, Entry>, rows: readonly Inserted[]): Change[] {
  return rows.map(({ id, createdAt, number, at }) => {
    const created = withMember(entries.get(id)?.payload ?? '{}', 'createdAt', createdAt)
    const json = Buffer.from(withMember(created, 'updatedAt', createdAt))
    return { kind, id, json, atMs: at.getTime(), number }
  })
}

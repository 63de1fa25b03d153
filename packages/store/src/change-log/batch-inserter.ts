import type { Context, Position } from '@overlay/rpc'
import sql, { type Sql } from 'sql-template-tag'
import { batch } from '../postgres/batch.js'
import { type Actor, headFor } from './append.js'
import type { ChangeLog } from './change-log.js'
import { refuseTooLarge } from './message-size.js'

/** A row to insert. */
export interface NewRow {
  readonly id: string
  /** By the names of the table, the id among them. */
  readonly columns: object
  /** The row in the audit and in the payload, without its times. */
  readonly plain: object
  /** Members that only the payload has. */
  readonly payload?: object | undefined
  /** An insert that has not begun by the deadline is rejected with TIMEOUT. */
  readonly by: Actor & Pick<Context, 'deadline'>
}

interface InsertedRow {
  readonly id: string
  readonly createdAt: Date
  readonly updatedAt: Date
  readonly number: number
  readonly timeline: string
  readonly at: Date
}

/**
 * For creates on hot paths: inserts the rows that wait in a replica in one statement and one round trip, with their audit
 * and change rows. `insert` selects from a JSON list of columns. It may leave rows out, which then have no position, and
 * locks whatever it needs before the counter of the change log is locked until the commit. Rows with the same id share the
 * result. An insert that fails is repeated alone, so that it harms no other.
 */
export function batchInserter(
  changeLog: ChangeLog,
  kind: string,
  insert: (list: string) => Sql,
): (row: NewRow) => Promise<Position | undefined> {
  const insertBatch = batch(
    async (entries: readonly NewRow[]) => {
      const byId = new Map(entries.map((row) => [row.id, row])) // each row has one number
      const { rows } = await changeLog.db.query<InsertedRow>(
        statement(kind, insert, [...byId.values()]),
        `create-${kind}`,
      )
      const changes = rows.map(({ id, createdAt, updatedAt, at, number }) => {
        const json = Buffer.from(
          JSON.stringify({ ...byId.get(id)?.plain, ...extraOf(byId.get(id)), createdAt, updatedAt }),
        )
        return { kind, id, json, atMs: at.getTime(), number }
      })
      const positions = new Map(rows.map(({ id, timeline, number }) => [id, { timeline, number }]))
      const last = rows.at(-1)
      if (last) changeLog.appended({ timeline: last.timeline, number: last.number }, changes)
      return entries.map(({ id }) => positions.get(id))
    },
    { deadlineOf: ({ by }) => by.deadline },
  )
  return async (row) => {
    const payload = JSON.stringify({ ...row.plain, ...extraOf(row) })
    await refuseTooLarge(changeLog.db, { kind, id: row.id, payload }) // before others share its statement
    return insertBatch(row)
  }
}

/** Nothing refers to a new row yet: followers may skip it. */
const extraOf = (row: NewRow | undefined) => ({ ...row?.payload, isNew: true })

const entryOf = (row: NewRow) => ({
  id: row.id,
  plain: row.plain,
  extra: extraOf(row),
  identity_id: row.by.caller.identityId,
  identity_name: row.by.caller.identityName,
  source_address: row.by.sourceAddress,
  request_id: row.by.requestId,
})

const TIME = sql`'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'`

/** The counter comes last: from its lock until the commit all other writers of the schema wait. */
const statement = (kind: string, insert: (list: string) => Sql, rows: readonly NewRow[]): Sql => sql`
    with inserted as (${insert(JSON.stringify(rows.map(({ columns }) => columns)))} returning id, created_at),
         ${headFor('inserted')},
         row as materialized (
         select id, created_at, plain || times as after, extra, identity_id, identity_name, source_address, request_id,
                timeline, at, start + row_number() over (order by place) as number
           from rows from (jsonb_to_recordset(${JSON.stringify(rows.map(entryOf))}::jsonb)
                as (id text, plain jsonb, extra jsonb, identity_id text, identity_name text, source_address text,
                    request_id text))
                with ordinality as list (
                id, plain, extra, identity_id, identity_name, source_address, request_id, place)
           join inserted using (id)
          cross join head
          cross join lateral to_char(created_at at time zone 'utc', ${TIME}) as created
          cross join lateral jsonb_build_object('createdAt', created, 'updatedAt', created) as times),
         audited as (
         insert into audit (number, kind, entity_id, after, identity_id, identity_name, source_address, request_id, at)
         select number, ${kind}, id, after, identity_id, identity_name, source_address, request_id, at from row),
         changed as (
         insert into change (number, kind, entity_id, entity, at)
         select number, ${kind}, id, after || extra, at from row)
  select id, created_at as "createdAt", created_at as "updatedAt", number, timeline, at from row order by number`

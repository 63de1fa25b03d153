import type { Change, Position } from '@overlay/rpc'
import sql, { type Sql } from 'sql-template-tag'
import { batch } from '../postgres/batch.js'
import type { Actor } from './append.js'
import type { ChangeLog } from './change-log.js'
import { refuseTooLarge } from './too-large.js'

/** A row that is to be made. */
export interface NewRow {
  readonly id: string
  /** Its columns, in the words of the table, the id among them. */
  readonly columns: object
  /** As the audit and followers see it. The times are the database's. */
  readonly plain: object
  /** What followers hear besides, which the audit must not hold. */
  readonly payload?: object | undefined
  readonly by: Actor
}

interface Made {
  readonly id: string
  readonly createdAt: Date
  readonly number: number
  readonly timeline: string
  readonly at: Date
}

/**
 * For creates that are hot: what waits in a replica is made in one statement, with its audit and change rows. `insert`
 * makes rows out of a JSON list of columns and may leave some out. Those have no position.
 */
export function batchInserter(
  changeLog: ChangeLog,
  kind: string,
  insert: (list: string) => Sql,
): (row: NewRow) => Promise<Position | undefined> {
  const create = batch<NewRow, Made | undefined>(async (entries) => {
    // each row has one number: whoever asks twice for one id gets what the first asked for
    const wanted = new Map<string, Wanted>()
    for (const entry of entries) if (!wanted.has(entry.id)) wanted.set(entry.id, wantedIn(entry))
    const { rows } = await changeLog.db.query<Made>(
      statement(kind, insert, [...wanted.values()]),
      `create-${kind}`,
    )
    const last = rows.at(-1)
    if (last) changeLog.appended(positionOf(last), changesOf(kind, wanted, rows))
    const made = new Map(rows.map((row) => [row.id, row]))
    return entries.map(({ id }) => made.get(id))
  })
  return async (row) => {
    const told = JSON.stringify({ ...row.plain, ...row.payload })
    await refuseTooLarge(changeLog.db, { kind, id: row.id, told }) // alone: who is made with it is not refused
    const made = await create(row)
    return made && positionOf(made)
  }
}

const positionOf = ({ timeline, number }: Made): Position => ({ timeline, number })

/** Nothing can hang yet on what is new: followers may save themselves the look. */
const wantedIn = ({ id, columns, plain, payload, by: { caller, requestId } }: NewRow) => ({
  columns,
  row: {
    id,
    plain,
    told: { ...plain, ...payload, isNew: true },
    identity_id: caller.identityId,
    request_id: requestId,
  },
})

type Wanted = ReturnType<typeof wantedIn>

/** The counter comes last: whoever holds it keeps all other writers of the schema waiting until the commit. */
function statement(kind: string, insert: (list: string) => Sql, wanted: readonly Wanted[]): Sql {
  const columns = JSON.stringify(wanted.map(({ columns }) => columns))
  const list = JSON.stringify(wanted.map(({ row }) => row))
  return sql`
    with made as (${insert(columns)} returning id, created_at),
         head as materialized (
         select timeline, number - n as start, at
           from (select count(*)::int as n from made) as counted, advance(n)
          where n > 0),
         row as materialized (
         select id, created_at, plain, told, identity_id, request_id, timeline, at,
                start + row_number() over (order by place) as number,
                jsonb_build_object('createdAt', time, 'updatedAt', time) as times
           from rows from (jsonb_to_recordset(${list}::jsonb)
                as (id text, plain jsonb, told jsonb, identity_id text, request_id text))
                with ordinality as list (id, plain, told, identity_id, request_id, place)
           join made using (id)
          cross join head
          cross join to_char(created_at at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') as time),
         audited as (
         insert into audit (number, kind, entity_id, after, identity_id, request_id, at)
         select number, ${kind}, id, plain || times, identity_id, request_id, at from row),
         changed as (
         insert into change (number, kind, entity_id, entity, at)
         select number, ${kind}, id, told || times, at from row)
  select id, created_at as "createdAt", number, timeline, at from row order by number`
}

function changesOf(kind: string, wanted: ReadonlyMap<string, Wanted>, made: readonly Made[]): Change[] {
  return made.map(({ id, createdAt, number, at }) => {
    const told = { ...wanted.get(id)?.row.told, createdAt, updatedAt: createdAt }
    return { kind, id, json: Buffer.from(JSON.stringify(told)), atMs: at.getTime(), number }
  })
}

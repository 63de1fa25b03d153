import type { Change } from '@overlay/rpc'
import sql, { type Sql } from 'sql-template-tag'
import { batch } from '../postgres/batch.js'
import type { Actor } from './append.js'
import { authorOf, type Numbered, positionOf } from './batch-inserter.js'
import type { ChangeLog } from './change-log.js'
import { headFor } from './numbers.js'

/** A row to delete. */
export interface OldRow {
  readonly id: string
  /** The members that `remove` reads, by the names of the table, the id among them. */
  readonly columns: object
  /** The row in the audit. */
  readonly before: object
  readonly by: Actor
}

/** The delete, which returns `id`, and a common table expression of what follows from it in the same statement. */
export interface Removal {
  readonly rows: Sql
  readonly also: Sql
}

/**
 * For deletes on hot paths: deletes the rows that wait in a replica in one statement, with their audit and change rows.
 * `remove` reads a JSON list of columns and may leave rows in place. Resolves to false for those. Its delete is named
 * `removed`.
 */
export function batchRemover(
  changeLog: ChangeLog,
  kind: string,
  remove: (list: string) => Removal,
): (row: OldRow) => Promise<boolean> {
  return batch(async (entries) => {
    // each row has one number: of several entries with one id the first counts
    const byId = new Map(entries.toReversed().map((entry) => [entry.id, entry]))
    const { rows } = await changeLog.db.query<Numbered>(
      statement(kind, remove, [...byId.values()]),
      `remove-${kind}`,
    )
    const last = rows.at(-1)
    if (last) changeLog.appended(positionOf(last), rows.map(changeOf(kind)))
    const removed = new Set(rows.map(({ id }) => id))
    return entries.map(({ id }) => removed.has(id))
  })
}

const changeOf =
  (kind: string) =>
  ({ id, number, at }: Numbered): Change => ({
    kind,
    id,
    json: Buffer.alloc(0),
    atMs: at.getTime(),
    number,
  })

/** The counter comes last: from its lock until the commit all other writers of the schema wait. */
function statement(kind: string, remove: (list: string) => Removal, entries: readonly OldRow[]): Sql {
  const { rows, also } = remove(JSON.stringify(entries.map(({ columns }) => columns)))
  const list = JSON.stringify(entries.map(({ id, before, by }) => ({ id, before, ...authorOf(by) })))
  return sql`
    with removed as (${rows}),
         ${also},
         ${headFor('removed')},
         row as materialized (
         select id, before, identity_id, identity_name, source_address, request_id, timeline, at,
                start + row_number() over (order by id) as number
           from jsonb_to_recordset(${list}::jsonb)
             as list (id text, before jsonb, identity_id text, identity_name text, source_address text,
                      request_id text)
           join (select id from removed) as removed using (id)
          cross join head),
         audited as (
         insert into audit (number, kind, entity_id, before, identity_id, identity_name, source_address, request_id, at)
         select number, ${kind}, id, before, identity_id, identity_name, source_address, request_id, at
           from row),
         changed as (
         insert into change (number, kind, entity_id, at)
         select number, ${kind}, id, at from row)
  select id, number, timeline, at from row order by number`
}

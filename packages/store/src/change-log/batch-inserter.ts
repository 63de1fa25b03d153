import type { Position } from '@overlay/rpc'
import sql, { type Sql } from 'sql-template-tag'
import type { Actor } from './append.js'
import { batchWriter, type RowWrite } from './batch-writer.js'
import type { ChangeLog } from './change-log.js'

/** A row to insert. */
export interface NewRow {
  readonly id: string
  /** By the names of the table, the id among them. */
  readonly columns: object
  /** The row in the audit and in the payload, without its times. */
  readonly plain: object
  /** Members that only the payload has. */
  readonly payload?: object | undefined
  readonly by: Actor & Pick<RowWrite, 'deadline'>
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
  const write = batchWriter<RowWrite & Pick<NewRow, 'columns'>>(changeLog, {
    kind,
    name: `create-${kind}`,
    write: (entries) => sql`
         inserted as (${insert(JSON.stringify(entries.map(({ columns }) => columns)))} returning id, created_at),
         written as (
         select id, created_at, created_at as updated_at from inserted)`,
  })
  return ({ id, columns, plain, payload, by }) => {
    // nothing refers to a new row yet: followers may skip it
    const extra = JSON.stringify({ ...payload, isNew: true })
    return write({
      id,
      columns,
      after: JSON.stringify(plain),
      extra,
      by,
      deadline: by.deadline,
    })
  }
}

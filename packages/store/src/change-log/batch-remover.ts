import sql, { type Sql } from 'sql-template-tag'
import type { Actor } from './append.js'
import { batchWriter, type RowWrite } from './batch-writer.js'
import type { ChangeLog } from './change-log.js'

/** A row to delete. */
export interface OldRow {
  readonly id: string
  /** The members that `remove` reads, by the names of the table, the id among them. */
  readonly columns: object
  /** The row in the audit. */
  readonly before: object
  readonly by: Actor & Pick<RowWrite, 'deadline'>
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
  const write = batchWriter<RowWrite & Pick<OldRow, 'columns'>>(changeLog, {
    kind,
    name: `remove-${kind}`,
    write(entries) {
      const { rows, also } = remove(JSON.stringify(entries.map(({ columns }) => columns)))
      return sql`
         removed as (${rows}),
         ${also},
         written as (
         select id, null::timestamptz as created_at, null::timestamptz as updated_at
           from removed)`
    },
  })
  return async ({ id, columns, before, by }) =>
    (await write({ id, columns, before: JSON.stringify(before), by, deadline: by.deadline })) !== undefined
}

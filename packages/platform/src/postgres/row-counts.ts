import type { Logger } from 'pino'
import sql, { type Sql } from 'sql-template-tag'
import { runPeriodically } from '../async/periodic.js'
import type { Database } from './database.js'

const EVERY_MS = 15_000
const MANY = 100

/** The rows of a table that its schema keeps count of; true after each commit, as the statement around it sees it. */
export const countOfTable = (table: string): Sql =>
  sql`(select coalesce(sum(rows), 0)::bigint from row_count where table_name = ${table})`

/** Makes the parts of counts one, each replica now and then: a part is gone when another comes for it. */
export const startCompactingCounts = (db: Database, log: Logger): AsyncDisposable =>
  runPeriodically(EVERY_MS, () =>
    compactCounts(db).catch((err: unknown) => {
      log.warn({ err, schema: db.schema }, 'counts of rows not added up')
    }),
  )

export const compactCounts = (db: Database, many = MANY): Promise<unknown> =>
  db.query(
    sql`
    with parts as (
         delete from row_count where (select count(*) > ${many} from row_count) returning table_name, rows)
  insert into row_count (table_name, rows) select table_name, sum(rows) from parts group by table_name`,
    'add-up-row-counts',
  )

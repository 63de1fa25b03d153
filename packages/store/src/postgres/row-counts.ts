import { runPeriodically } from '@overlay/process/async'
import type { Logger } from 'pino'
import sql, { type Sql } from 'sql-template-tag'
import { MANY_COUNTS, MERGE_COUNTS_MS } from '../limits.js'
import type { Database } from './database.js'

/** The number of rows of a counted table, exact in the snapshot of the statement around it. */
export const countOfTable = (table: string): Sql =>
  sql`(select coalesce(sum(rows), 0)::bigint from row_count where table_name = ${table})`

/** Merges the parts of counts, periodically in each replica. Replicas do not merge a part twice. */
export const startCompactingCounts = (db: Database, log: Logger): AsyncDisposable =>
  runPeriodically(MERGE_COUNTS_MS, () =>
    compactCounts(db).catch((err: unknown) => {
      log.warn({ err, schema: db.schema }, 'counts of rows not merged')
    }),
  )

export const compactCounts = (db: Database, many = MANY_COUNTS): Promise<unknown> =>
  db.query(
    sql`
    with parts as (
         delete from row_count where (select count(*) > ${many} from row_count) returning table_name, rows)
  insert into row_count (table_name, rows) select table_name, sum(rows) from parts group by table_name`,
    'add-up-row-counts',
  )

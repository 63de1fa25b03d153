import sql, { raw, type Sql } from 'sql-template-tag'

/**
 * A common table expression `head` with the numbers of as many changes as `rows`, another one, has: the first is
 * `start` + 1. Without rows it is empty. Its lock on the counter ends with the commit.
 */
export const headFor = (rows: string): Sql => sql`
         head as materialized (
         select timeline, number, number - n as start, at
           from (select count(*)::int as n from ${raw(rows)}) as counted, advance(n)
          where n > 0)`

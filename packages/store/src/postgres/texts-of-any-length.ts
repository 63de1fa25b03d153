import sql, { type Sql } from 'sql-template-tag'

/**
 * An array as a parameter whose length the planner does not see. It does see that of a plain one, finds a plan for few
 * entries cheaper than the general one, and then plans the statement each time.
 */
export const textsOfAnyLength = (texts: readonly string[]): Sql => sql`(select ${texts}::text[])`

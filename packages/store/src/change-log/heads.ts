import { coalesced, openLimit, untilAborted } from '@overlay/process/async'
import type { Positions } from '@overlay/rpc'
import sql, { join, raw, type Sql } from 'sql-template-tag'
import { type Db, onlyRow } from '../postgres/database.js'

/**
 * The ends of the change logs of these schemas, as a value in SQL: JSON text of `Positions`. Each schema publishes its own
 * in a view that all services of the database may read.
 */
export function headsAsText(schemas: readonly string[]): Sql {
  const heads = schemas.map(
    (schema) => sql`
      select ${raw(`'${schema}'`)} as schema, timeline, number from ${raw(schema)}.head`,
  )
  return sql`(
    select json_object_agg(schema, json_build_object('timeline', timeline, 'number', number))::text
      from (${join(heads, ' union all ')}) as heads)`
}

/**
 * A function that reads these ends. The read begins after the call, and callers share it. TIMEOUT after `limitMs`: the
 * next read does not wait for a connection that hangs.
 */
export function headsReader(db: Db, schemas: readonly string[], limitMs: number): () => Promise<Positions> {
  const statement = sql`select ${headsAsText(schemas)} as heads`
  const name = `heads-${schemas.join('-')}` // statements of one name must have one text
  return coalesced(async () => {
    using limit = openLimit(limitMs)
    const reading = db.query<{ heads: string }>(statement, name)
    const { heads } = onlyRow((await Promise.race([reading, untilAborted(limit.signal)])).rows)
    return JSON.parse(heads) as Positions
  })
}

import type { Context } from '@overlay/rpc'
import type { QueryResultRow } from 'pg'
import sql, { join, type Sql } from 'sql-template-tag'
import { READ_TOGETHER_ROWS } from '../limits.js'
import { batch } from '../postgres/batch.js'
import type { Db } from '../postgres/database.js'
import { textsOfAnyLength } from '../postgres/texts-of-any-length.js'
import type { Kind } from './kind.js'
import { isAll, tableOf } from './row.js'

/** A row that the caller may see, as it was after the call or later. The same `columns` are the same array. */
export type FindRow = (
  kind: Kind,
  columns: readonly Sql[],
  id: string,
  context: Context,
) => Promise<QueryResultRow | undefined>

interface Entry {
  readonly id: string
  readonly context: Context
}

type Reader = (entry: Entry) => Promise<QueryResultRow | undefined>

/**
 * Finds single rows. Reads that arrive while a statement of the same columns runs share the next one, so that each begins
 * after its request has arrived. Callers whose scope differs have statements of their own.
 */
export function singleRows(db: Db): FindRow {
  const readers = new Map<readonly Sql[], Reader>()

  function readerFor(kind: Kind, columns: readonly Sql[]): Reader {
    let reader = readers.get(columns)
    if (!reader) {
      const name = `get-${kind.entity.kind}-${readers.size}`
      const readBatch = async (entries: readonly Entry[]) => {
        const ids = entries.map(({ id }) => id)
        const byId = await rowsById(db, kind, columns, [...new Set(ids)], name)
        return ids.map((id) => byId.get(id))
      }
      reader = batch(readBatch, { limit: READ_TOGETHER_ROWS, deadlineOf: ({ context }) => context.deadline })
      readers.set(columns, reader)
    }
    return reader
  }

  return async (kind, columns, id, context) => {
    const scope = kind.seams.scope?.(context.caller) ?? whole
    if (isAll(scope)) return readerFor(kind, columns)({ id, context })
    const { rows } = await db.query(statement(kind, columns, [id], scope))
    return rows[0]
  }
}

/** The rows with these ids, regardless of the caller's scope. */
async function rowsById(
  db: Db,
  kind: Kind,
  columns: readonly Sql[],
  ids: readonly string[],
  name?: string,
): Promise<ReadonlyMap<string, QueryResultRow>> {
  const { rows } = await db.query<Found>(statement(kind, columns, ids, whole), name)
  return new Map(rows.map((row) => [row.entry_id, row]))
}

interface Found extends QueryResultRow {
  readonly entry_id: string
}

const whole = sql`true`

/** By key for each entry: from an array, the planner would expect so many rows that it reads a small table whole. */
function statement({ entity }: Kind, columns: readonly Sql[], ids: readonly string[], scope: Sql): Sql {
  const table = tableOf(entity)
  return sql`
    select entry.id as entry_id, row.*
      from unnest(${textsOfAnyLength(ids)}) as entry (id)
     cross join lateral (
           select ${join(columns)} from ${table} where ${table}.id = entry.id and ${scope} limit 1) as row`
}

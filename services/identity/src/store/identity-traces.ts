import { randomUUID } from 'node:crypto'
import { notFound } from '@overlay/rpc'
import type { RowChange } from '@overlay/store/change-log'
import { onlyRow, type Tx } from '@overlay/store/postgres'
import sql from 'sql-template-tag'

export interface NewTrace {
  readonly durationMs: number
  /** Empty: a new id. */
  readonly traceId: string
  readonly channels: readonly string[]
}

export interface StoredTrace {
  readonly traceId: string
  readonly channels: readonly string[]
  readonly until: Date
}

const columns = sql`trace_id as "traceId", channels, until`

/** Ends the trace of an identity. Returns it, or null where there was none. */
export async function removeTrace(tx: Tx, identityId: string): Promise<StoredTrace | null> {
  const identities = await tx.query(sql`select from identity where id = ${identityId} for key share`)
  // differs: the original answers a server error
  if (identities.rows.length === 0) throw notFound('identity', identityId)
  const { rows } = await tx.query<StoredTrace>(
    sql`delete from identity_trace where identity_id = ${identityId} returning ${columns}`,
  )
  return rows[0] ?? null
}

export async function insertTrace(tx: Tx, identityId: string, trace: NewTrace): Promise<StoredTrace> {
  const { durationMs, traceId, channels } = trace
  const { rows } = await tx.query<StoredTrace>(sql`
    insert into identity_trace (identity_id, trace_id, channels, until)
    values (${identityId}, ${traceId || randomUUID()}, ${channels.includes('all') ? [] : [...channels]},
            now() + ${durationMs}::float8 * interval '1 millisecond')
 returning ${columns}`)
  return onlyRow(rows)
}

/** For the audit alone. */
export const traceChange = (
  identityId: string,
  before: StoredTrace | null,
  after: StoredTrace | null,
): RowChange => ({ kind: 'identity-traces', id: identityId, before, after })

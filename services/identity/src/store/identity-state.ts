import { randomUUID } from 'node:crypto'
import { Fault, notFound } from '@overlay/rpc'
import type { RowChange } from '@overlay/store/change-log'
import { type Db, onlyRow, type Tx } from '@overlay/store/postgres'
import sql from 'sql-template-tag'
import { changeIdentity } from './identities.js'
import { forgetFailuresOf } from './password-attempts.js'
import { endSessionsOfIdentities } from './session-ends.js'

/** No date-time of the wire is later than the year 9999. */
const LAST_MS = Date.UTC(9999, 11, 31)

/**
 * Disables an identity and ends its sessions; 0 minutes: until it is enabled. Resets its count of failed logins.
 */
export async function disableIdentity(tx: Tx, id: string, minutes: number): Promise<RowChange[]> {
  const bounded = Math.min(minutes, (LAST_MS - Date.now()) / 60_000)
  const until = minutes > 0 ? sql`now() + ${bounded}::float8 * interval '1 minute'` : sql`null`
  const change = await changeIdentity(tx, id, sql`disabled_at = now(), disabled_until = ${until}`)
  if (!change) return []
  await forgetFailuresOf(tx, id)
  return [...(await endSessionsOfIdentities(tx, [id])), change]
}

export async function enableIdentity(tx: Tx, id: string): Promise<RowChange> {
  const change = await changeIdentity(tx, id, sql`disabled_at = null, disabled_until = null`)
  if (!change) throw notFound('identity', id)
  await forgetFailuresOf(tx, id)
  return change
}

export async function refuseDefaultAdmin(tx: Tx, id: string): Promise<void> {
  const { rows } = await tx.query<{ isDefaultAdmin: boolean }>(
    sql`select is_default_admin as "isDefaultAdmin" from identity where id = ${id}`,
  )
  if (!rows[0]) throw notFound('identity', id)
  // differs: would lock all admins out
  if (rows[0].isDefaultAdmin)
    throw new Fault('ENTITY_CAN_NOT_BE_UPDATED', 'the default admin can not be disabled')
}

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

/**
 * True where the identity is connected to a router, as SQL over its table. A report counts for 75 s: routers send one each
 * 60 s, and it is saved within seconds.
 */
export const isConnected = sql`
  exists (select from identity_connection c
           where c.identity_id = identity.id and c.seen_at > now() - interval '75 seconds')`

/**
 * Records that routers report connections of these identities. The lock of a new row keeps its identity until the row is
 * there, so that a delete of the identity finds it. An identity that is being deleted is skipped. Rows are locked in the
 * order of ids, because replicas of sessions report the same ones at the same time.
 */
export async function saveConnections(tx: Db, identityIds: readonly string[]): Promise<void> {
  await tx.query(
    sql`
    with locked as (
         select identity_id from identity_connection where identity_id = any(${identityIds}::text[])
          order by identity_id for no key update),
         updated as (
         update identity_connection set seen_at = now() where identity_id in (select identity_id from locked)
         returning identity_id),
         fresh as (
         select id from identity
          where id = any(${identityIds}::text[]) and id not in (select identity_id from updated)
            for key share skip locked)
    insert into identity_connection (identity_id, seen_at)
    select id, now() from fresh order by id
        on conflict (identity_id) do update set seen_at = excluded.seen_at`,
    'save-connections',
  )
}

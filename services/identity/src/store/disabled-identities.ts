import { Fault, notFound } from '@overlay/rpc'
import type { RowChange } from '@overlay/store/change-log'
import type { Tx } from '@overlay/store/postgres'
import sql from 'sql-template-tag'
import { changeIdentity } from './identities.js'
import { forgetFailuresOf } from './login-attempts.js'
import { endSessionsOfIdentities } from './session-ends.js'

/** No date-time of the wire is later than the year 9999. */
const LAST_MS = Date.UTC(9999, 11, 31)

/** Disables an identity and ends its sessions; 0 minutes: until it is enabled. Its count of failed logins starts anew. */
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

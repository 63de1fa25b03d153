import type { Tx } from '@overlay/platform/postgres'
import { Fault, type FaultCode } from '@overlay/rpc'
import sql, { type Sql } from 'sql-template-tag'

interface AllowedMethods {
  readonly updb: boolean
  readonly cert: boolean
}

/** Before an auth policy allows only these methods. */
export const refuseShuttingOutBy = (tx: Tx, authPolicyId: string, allowed: AllowedMethods): Promise<void> =>
  refuseShuttingOut(
    tx,
    'ENTITY_CAN_NOT_BE_UPDATED',
    sql`i.auth_policy_id = ${authPolicyId}`,
    sql`a.method = 'updb' and ${allowed.updb}::boolean or a.method = 'cert' and ${allowed.cert}::boolean`,
  )

/** Before an identity gets another auth policy. */
export const refuseShuttingOutUnder = (tx: Tx, identityId: string, authPolicyId: string): Promise<void> =>
  refuseShuttingOut(
    tx,
    'ENTITY_CAN_NOT_BE_UPDATED',
    sql`i.id = ${identityId}`,
    sql`exists (select from auth_policy p where p.id = ${authPolicyId} and ${isAllowed})`,
  )

/** Before an authenticator is deleted. */
export const refuseShuttingOutWithout = (
  tx: Tx,
  identityId: string,
  authenticatorId: string,
): Promise<void> =>
  refuseShuttingOut(
    tx,
    'ENTITY_CAN_NOT_BE_DELETED',
    sql`i.id = ${identityId}`,
    sql`a.id <> ${authenticatorId}
        and exists (select from auth_policy p where p.id = i.auth_policy_id and ${isAllowed})`,
  )

const isAllowed = sql`
  (a.method = 'updb' and p.primary_updb_allowed or a.method = 'cert' and p.primary_cert_allowed)`

/**
 * differs: the default admin keeps an authenticator that its auth policy allows, or nobody might get in again. The lock
 * of its row puts all changes that could take the last one away in an order.
 */
async function refuseShuttingOut(tx: Tx, code: FaultCode, which: Sql, isUsable: Sql): Promise<void> {
  const locked = await tx.query<{ id: string }>(sql`
    select i.id from identity i where i.is_default_admin and ${which} for no key update`)
  const [admin] = locked.rows
  if (!admin) return
  const { rows } = await tx.query(sql`
    select from identity i join authenticator a on a.identity_id = i.id
     where i.id = ${admin.id} and (${isUsable}) limit 1`)
  if (rows.length === 0)
    throw new Fault(code, 'the default admin would have no authenticator that it may use')
}

import { Fault, type FaultCode } from '@overlay/rpc'
import type { Db, Tx } from '@overlay/store/postgres'
import sql, { type Sql } from 'sql-template-tag'

interface AllowedMethods {
  readonly updb: boolean
  readonly cert: boolean
}

/** The user name of the default admin, empty when it has none; undefined: there is no default admin. */
export async function defaultAdminUsername(db: Db): Promise<string | undefined> {
  const { rows } = await db.query<{ username: string }>(sql`
    select coalesce(a.username, '') as username
      from identity i left join authenticator a on a.identity_id = i.id and a.method = 'updb'
     where i.is_default_admin limit 1`)
  return rows[0]?.username
}

/** Lets one transaction at a time create the default admin. */
export const lockDefaultAdmin = (tx: Tx) =>
  tx.query(sql`select pg_advisory_xact_lock(hashtextextended('default admin', 0))`)

/** For an auth policy that is about to allow only these methods. */
export const refuseLockoutByMethods = (
  tx: Tx,
  authPolicyId: string,
  allowed: AllowedMethods,
): Promise<void> =>
  refuseLockout(
    tx,
    'ENTITY_CAN_NOT_BE_UPDATED',
    sql`i.auth_policy_id = ${authPolicyId}`,
    sql`a.method = 'updb' and ${allowed.updb}::boolean or a.method = 'cert' and ${allowed.cert}::boolean`,
  )

/** For an identity that is about to get another auth policy. */
export const refuseLockoutByPolicy = (tx: Tx, identityId: string, authPolicyId: string): Promise<void> =>
  refuseLockout(
    tx,
    'ENTITY_CAN_NOT_BE_UPDATED',
    sql`i.id = ${identityId}`,
    sql`exists (select from auth_policy p where p.id = ${authPolicyId} and ${isAllowed})`,
  )

/** For an authenticator that is about to be deleted. */
export const refuseLockoutByRemoval = (tx: Tx, identityId: string, authenticatorId: string): Promise<void> =>
  refuseLockout(
    tx,
    'ENTITY_CAN_NOT_BE_DELETED',
    sql`i.id = ${identityId}`,
    sql`a.id <> ${authenticatorId}
        and exists (select from auth_policy p where p.id = i.auth_policy_id and ${isAllowed})`,
  )

const isAllowed = sql`
  (a.method = 'updb' and p.primary_updb_allowed or a.method = 'cert' and p.primary_cert_allowed)`

/**
 * differs: the default admin keeps an authenticator that its auth policy allows, or no admin could log in again. The lock
 * of its row serializes all changes that could remove the last one.
 */
async function refuseLockout(tx: Tx, code: FaultCode, which: Sql, isUsable: Sql): Promise<void> {
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

import { Fault, type FaultCode } from '@overlay/rpc'
import type { Db, Tx } from '@overlay/store/postgres'
import sql, { type Sql } from 'sql-template-tag'
import type { Disabling } from '../domain/disabled.js'
import type { PasswordRules } from '../domain/passwords.js'

/** An administrator with the rules for passwords, and the password's authenticator if there is one. */
export interface FoundAdmin extends Disabling {
  readonly identityId: string
  readonly identityName: string
  readonly isDefaultAdmin: boolean
  readonly authenticatorId: string | null
  readonly username: string | null
  readonly hasSecondFactor: boolean
  readonly authPolicyId: string
  readonly authPolicyName: string
  /** The name of the external signer whose token logins need, too. */
  readonly secondSigner: string | null
  readonly isPasswordAllowed: boolean
  readonly passwordRules: PasswordRules
}

/** Finds an administrator by user name, else by the name of the identity. Without a name: the default admin. */
export async function adminBy(db: Db, name: string | undefined): Promise<FoundAdmin | undefined> {
  const which =
    name === undefined
      ? sql`i.is_default_admin`
      : sql`(i.is_admin or i.is_default_admin) and ${name} in (a.username, i.name)`
  const { rows } = await db.query<FoundAdmin>(sql`
    select i.id as "identityId", i.name as "identityName", i.is_default_admin as "isDefaultAdmin",
           i.disabled_at as "disabledAt", i.disabled_until as "disabledUntil",
           a.id as "authenticatorId", a.username,
           exists (select from second_factor f where f.identity_id = i.id and f.is_verified) as "hasSecondFactor",
           p.id as "authPolicyId", p.name as "authPolicyName",
           (select name from external_jwt_signer where id = p.secondary_require_ext_jwt_signer) as "secondSigner", p.primary_updb_allowed as "isPasswordAllowed",
           json_build_object(
             'minPasswordLength', p.primary_updb_min_password_length,
             'requireMixedCase', p.primary_updb_require_mixed_case,
             'requireNumberChar', p.primary_updb_require_number_char,
             'requireSpecialChar', p.primary_updb_require_special_char) as "passwordRules"
      from identity i
      join auth_policy p on p.id = i.auth_policy_id
      left join authenticator a on a.identity_id = i.id and a.method = 'updb'
     where ${which}
     order by a.username = ${name ?? ''} desc nulls last limit 1`)
  return rows[0]
}

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

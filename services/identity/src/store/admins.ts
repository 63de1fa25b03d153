import type { Db } from '@overlay/store/postgres'
import sql from 'sql-template-tag'
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

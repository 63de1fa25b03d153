import type { Db, Tx } from '@overlay/store/postgres'
import sql from 'sql-template-tag'
import { NAMED_REFERENCES } from '../limits.js'

/** Keeps the auth policy from being deleted. False: it does not exist. */
export async function shareAuthPolicy(tx: Tx, id: string): Promise<boolean> {
  const { rows } = await tx.query(sql`select from auth_policy where id = ${id} for key share`)
  return rows.length > 0
}

/** Some identities that have the auth policy. */
export async function identitiesUnder(db: Db, authPolicyId: string): Promise<string[]> {
  const { rows } = await db.query<{ id: string }>(sql`
    select id from identity where auth_policy_id = ${authPolicyId} order by id limit ${NAMED_REFERENCES}`)
  return rows.map(({ id }) => id)
}

/** Keeps these signers from being deleted. Returns those that exist. */
export async function shareSigners(tx: Tx, ids: readonly string[]): Promise<ReadonlySet<string>> {
  if (ids.length === 0) return new Set()
  const { rows } = await tx.query<{ id: string }>(sql`
    select id from external_jwt_signer where id = any(${ids}) order by id for key share`)
  return new Set(rows.map(({ id }) => id))
}

/** Some auth policies that name the signer: those that allow it for logins first, then those that require it. */
export async function policiesNaming(
  db: Db,
  signerId: string,
): Promise<readonly { readonly id: string; readonly isAllowed: boolean }[]> {
  const { rows } = await db.query<{ id: string; isAllowed: boolean }>(sql`
    select id, primary_ext_jwt_allowed_signers @> array[${signerId}]::text[] as "isAllowed" from auth_policy
     where primary_ext_jwt_allowed_signers @> array[${signerId}]::text[]
        or secondary_require_ext_jwt_signer = ${signerId}
     order by "isAllowed" desc, id limit ${NAMED_REFERENCES}`)
  return rows
}

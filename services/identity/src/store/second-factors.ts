import type { RowChange } from '@overlay/store/change-log'
import { type Db, onlyRow, type Tx } from '@overlay/store/postgres'
import sql, { type Sql } from 'sql-template-tag'
import { touchIdentity } from './identities.js'
import { forgetCodes } from './oidc-logins.js'

export interface StoredFactor {
  readonly id: string
  readonly identityId: string
  readonly identityName: string
  readonly isVerified: boolean
  readonly sealed: string
  readonly usedSteps: readonly number[]
  readonly createdAt: Date
  readonly updatedAt: Date
}

/** Locks it until the end of the transaction, so that one code counts once. */
export async function lockSecondFactor(tx: Tx, identityId: string): Promise<StoredFactor | undefined> {
  const { rows } = await tx.query<StoredFactor>(sql`
    select f.id, f.identity_id as "identityId", i.name as "identityName", f.is_verified as "isVerified", f.sealed,
           f.used_steps as "usedSteps", f.created_at as "createdAt", f.updated_at as "updatedAt"
      from second_factor f join identity i on i.id = f.identity_id
     where f.identity_id = ${identityId} for update of f`)
  return rows[0]
}

/** Undefined: the identity has one. */
export async function insertSecondFactor(
  tx: Tx,
  { id, identityId, sealed }: Pick<StoredFactor, 'id' | 'identityId' | 'sealed'>,
): Promise<RowChange | undefined> {
  const { rowCount } = await tx.query(sql`
    insert into second_factor (identity_id, id, sealed) values (${identityId}, ${id}, ${sealed})
        on conflict (identity_id) do nothing`)
  return rowCount === 1 ? secondFactorChange({ id, identityId }, null, { isVerified: false }) : undefined
}

/** Stores a factor after a valid code. */
export async function updateSecondFactor(
  tx: Tx,
  before: StoredFactor,
  { isVerified, sealed, usedSteps }: Pick<StoredFactor, 'isVerified' | 'sealed' | 'usedSteps'>,
): Promise<RowChange> {
  await tx.query(sql`
    update second_factor
       set is_verified = ${isVerified}, sealed = ${sealed}, used_steps = ${usedSteps},
           updated_at = clock_timestamp()
     where identity_id = ${before.identityId}`)
  return secondFactorChange(before, before, { isVerified })
}

/**
 * Removes the second factor of an identity, if there is one. Codes that were accepted count no more: sessions whose
 * auth policy demands a second factor wait for the next one.
 */
export async function removeSecondFactor(tx: Tx, identityId: string): Promise<RowChange[]> {
  const { rows } = await tx.query<{ id: string; isVerified: boolean }>(sql`
    delete from second_factor where identity_id = ${identityId} returning id, is_verified as "isVerified"`)
  const [removed] = rows
  if (!removed) return []
  // before logins are changed: the locks are those of a login whose code is redeemed, in its order
  const shown = await touchIdentity(tx, identityId)
  await forgetCodes(tx, identityId)
  // differs: sessions that wait for the factor would wait for ever, and those that have passed it would stay complete
  const reset = await setFactors(
    tx,
    sql`identity_id = ${identityId} and method <> 'router'
        and (is_mfa_required or is_mfa_complete or mfa_passed_at is not null)`,
    sql`is_mfa_required = false, is_mfa_complete = false, mfa_passed_at = null`,
  )
  return [...reset, secondFactorChange({ ...removed, identityId }, removed, null), ...(shown ? [shown] : [])]
}

/** Records that the session has passed its second factor. */
export const completeSession = (tx: Tx, id: string): Promise<RowChange[]> =>
  setFactors(
    tx,
    sql`id = ${id}`,
    sql`is_mfa_required = true, is_mfa_complete = true, mfa_passed_at = clock_timestamp()`,
  )

interface Factors {
  readonly id: string
  readonly identityId: string
  readonly isMfaRequired: boolean
  readonly isMfaComplete: boolean
  readonly mfaPassedAt: Date | null
}

/** Gateways drop these sessions from their caches, and posture checks learn when a code was accepted. */
async function setFactors(tx: Tx, which: Sql, values: Sql): Promise<RowChange[]> {
  const { rows } = await tx.query<Factors>(sql`
    update api_session set ${values} where ${which}
 returning id, identity_id as "identityId", is_mfa_required as "isMfaRequired",
           is_mfa_complete as "isMfaComplete", mfa_passed_at as "mfaPassedAt"`)
  return rows.map(
    ({ id, ...after }): RowChange => ({ kind: 'api-sessions', id, before: {}, after, payload: after }),
  )
}

export const countSecondFactors = async (db: Db): Promise<number> =>
  onlyRow((await db.query<{ rows: number }>(sql`select count(*) as rows from second_factor`)).rows).rows

/** For the audit alone, without secrets. Null: it does not exist. */
function secondFactorChange(
  { id, identityId }: Pick<StoredFactor, 'id' | 'identityId'>,
  before: Pick<StoredFactor, 'isVerified'> | null,
  after: Pick<StoredFactor, 'isVerified'> | null,
): RowChange {
  const plain = (state: Pick<StoredFactor, 'isVerified'> | null) =>
    state && { identityId, isVerified: state.isVerified }
  return { kind: 'second-factors', id, before: plain(before), after: plain(after) }
}

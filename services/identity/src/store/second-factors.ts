import type { RowChange } from '@overlay/platform/change-log'
import { type Db, onlyRow, type Tx } from '@overlay/platform/postgres'
import sql, { type Sql } from 'sql-template-tag'

export interface Stored {
  readonly id: string
  readonly identityId: string
  readonly identityName: string
  readonly isVerified: boolean
  readonly sealed: string
  readonly usedSteps: number[]
  /** Too many codes were wrong a moment ago. */
  readonly isPaused: boolean
  readonly createdAt: Date
  readonly updatedAt: Date
}

const MOST_FAILURES = 5
const PAUSE_SECONDS = 60

/** Held to the end of the transaction: the same code at the same time counts once. */
export async function secondFactorOf(tx: Tx, identityId: string): Promise<Stored | undefined> {
  const { rows } = await tx.query<Stored>(sql`
    select f.id, f.identity_id as "identityId", i.name as "identityName", f.is_verified as "isVerified", f.sealed,
           f.used_steps as "usedSteps", f.created_at as "createdAt", f.updated_at as "updatedAt",
           f.failures >= ${MOST_FAILURES} and f.failed_at > now() - ${PAUSE_SECONDS}::float8 * interval '1 second'
             as "isPaused"
      from second_factor f join identity i on i.id = f.identity_id
     where f.identity_id = ${identityId} for update of f`)
  return rows[0]
}

/** False: there is one already. */
export async function insertSecondFactor(
  tx: Tx,
  { id, identityId, sealed }: Pick<Stored, 'id' | 'identityId' | 'sealed'>,
): Promise<boolean> {
  const { rowCount } = await tx.query(sql`
    insert into second_factor (identity_id, id, sealed) values (${identityId}, ${id}, ${sealed})
        on conflict (identity_id) do nothing`)
  return rowCount === 1
}

export const countWrongCode = (tx: Tx, { identityId }: Stored) =>
  tx.query(sql`
    update second_factor set failures = failures + 1, failed_at = now() where identity_id = ${identityId}`)

/** After a right code. */
export const keepSecondFactor = (tx: Tx, { identityId, isVerified, sealed, usedSteps }: Stored) =>
  tx.query(sql`
    update second_factor
       set is_verified = ${isVerified}, sealed = ${sealed}, used_steps = ${usedSteps}, failures = 0,
           updated_at = clock_timestamp()
     where identity_id = ${identityId}`)

export const deleteSecondFactor = (tx: Tx, identityId: string) =>
  tx.query<{ id: string; isVerified: boolean }>(sql`
    delete from second_factor where identity_id = ${identityId} returning id, is_verified as "isVerified"`)

interface Factors {
  readonly id: string
  readonly identityId: string
  readonly isMfaRequired: boolean
  readonly isMfaComplete: boolean
  readonly mfaPassedAt: Date | null
}

/** Caches of gateways forget what they know of these sessions, and posture checks hear when a code was given. */
export async function setFactors(tx: Tx, which: Sql, values: Sql): Promise<RowChange[]> {
  const { rows } = await tx.query<Factors>(sql`
    update api_session set ${values} where ${which}
 returning id, identity_id as "identityId", is_mfa_required as "isMfaRequired",
           is_mfa_complete as "isMfaComplete", mfa_passed_at as "mfaPassedAt"`)
  return rows.map(({ id, ...after }) => ({ kind: 'api-sessions', id, before: {}, after, payload: after }))
}

export const countSecondFactors = async (db: Db): Promise<number> =>
  onlyRow((await db.query<{ rows: number }>(sql`select count(*) as rows from second_factor`)).rows).rows

/** As audit and followers know it: free of secrets. Nothing: it is gone. */
export const secondFactorChange = (
  { id, identityId }: { readonly id: string; readonly identityId: string },
  before: { readonly isVerified: boolean } | null,
  after: { readonly isVerified: boolean } | null,
): RowChange => {
  const plain = (state: { readonly isVerified: boolean } | null) =>
    state && { identityId, isVerified: state.isVerified }
  return { kind: 'second-factors', id, before: plain(before), after: plain(after) }
}

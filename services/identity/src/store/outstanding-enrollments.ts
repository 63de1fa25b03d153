import type { RowChange } from '@overlay/store/change-log'
import { type Db, type Tx, textsOfAnyLength } from '@overlay/store/postgres'
import sql, { type Sql } from 'sql-template-tag'
import { ENROLLMENT_CREATED } from '../limits.js'

/** An enrollment of an identity. */
export interface OutstandingEnrollment {
  readonly id: string
  readonly identityId: string
}

/**
 * True where pki may have an enrollment of the identity, as SQL over its table. Before the first load it may have any.
 */
export const mayHaveEnrollment = sql`
  (exists (select from outstanding_enrollment o where o.identity_id = identity.id)
   or not exists (select from followed where schema = 'pki' and timeline is not null))`

/** To be committed before the enrollment. */
export const expectEnrollment = async (db: Db, { id, identityId }: OutstandingEnrollment): Promise<void> => {
  await addMissing(db, [{ id, identityId }])
}

/** Adds those that are missing and whose identity exists: one that is being deleted does not. Returns their ids. */
export async function addMissing(
  db: Db,
  enrollments: readonly OutstandingEnrollment[],
): Promise<readonly string[]> {
  if (enrollments.length === 0) return []
  const ids = textsOfAnyLength(enrollments.map(({ id }) => id))
  const identityIds = textsOfAnyLength(enrollments.map(({ identityId }) => identityId))
  const { rows } = await db.query<{ id: string }>(
    sql`
    insert into outstanding_enrollment (id, identity_id)
    select entry.id, person.id
      from unnest(${ids}, ${identityIds}) as entry (id, identity_id)
     cross join lateral (select id from identity where identity.id = entry.identity_id for key share) as person
        on conflict do nothing
 returning id`,
    'expect-enrollments',
  )
  return rows.map(({ id }) => id)
}

/** After pki has deleted them. */
export async function removeEnded(db: Db, ids: readonly string[]): Promise<void> {
  if (ids.length === 0) return
  const all = textsOfAnyLength(ids)
  await db.query(
    sql`delete from outstanding_enrollment using unnest(${all}) as ended (id) where outstanding_enrollment.id = ended.id`,
    'remove-ended-enrollments',
  )
}

/** Removes all but these, which `ids` selects, and those that pki may be about to create. */
export async function removeExcept(tx: Tx, ids: Sql): Promise<void> {
  await tx.query(sql`
    delete from outstanding_enrollment where id not in (${ids}) and created_at < now() - ${ENROLLMENT_CREATED}`)
}

/** Selects `id` and `ref` of those that pki is not about to create. */
export const enrollmentReferences = sql`
  select id, id as ref from outstanding_enrollment where created_at < now() - ${ENROLLMENT_CREATED}`

/** The repair of rows whose enrollment does not exist. */
export async function removeUnfounded(tx: Tx, ids: readonly string[]): Promise<readonly RowChange[]> {
  await removeEnded(tx, ids)
  return []
}

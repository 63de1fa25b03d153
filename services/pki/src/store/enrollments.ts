import { randomUUID } from 'node:crypto'
import { enrollment, type RowOf } from '@overlay/model'
import type { RowChange } from '@overlay/store/change-log'
import {
  type AnyRow,
  changeOf,
  columnsOf,
  columnValues,
  insertListSql,
  insertRows,
  rowOf,
} from '@overlay/store/kind-store'
import { batch, type Db, onlyRow, type Tx, textsOfAnyLength } from '@overlay/store/postgres'
import sql, { raw, type Sql } from 'sql-template-tag'
import type { Enrollment, EnrollmentMethod } from '../domain/enrollment.js'
import { CLAIM_SECONDS } from '../limits.js'

/** As stored: all methods, and always with an end. */
export type StoredEnrollment = RowOf<typeof enrollment> & {
  readonly method: EnrollmentMethod
  readonly expiresAt: Date
}

/** Columns that name the owner of an enrollment, by its kind. */
export const ownerColumns = {
  identities: raw('identity_id'),
  'edge-routers': raw('edge_router_id'),
  'transit-routers': raw('transit_router_id'),
}
export type OwnerKind = keyof typeof ownerColumns

export const columns = columnsOf(enrollment)
export const storedOf = (row: Parameters<typeof rowOf>[1]) =>
  rowOf(enrollment, row) as unknown as StoredEnrollment
export const enrollmentChange = (
  id: string,
  before: StoredEnrollment | null,
  after: StoredEnrollment | null,
): RowChange => changeOf(enrollment, id, before as AnyRow | null, after as AnyRow | null)

async function findWhere(db: Db, which: Sql, name?: string): Promise<readonly StoredEnrollment[]> {
  const { rows } = await db.query(sql`select ${columns} from enrollment where ${which}`, name)
  return rows.map(storedOf)
}

/** Finds enrollments by their tokens: concurrent requests share one statement. */
export const enrollmentsByToken = (db: Db): ((token: string) => Promise<StoredEnrollment | undefined>) =>
  batch(async (tokens: readonly string[]) => {
    const found = await findWhere(
      db,
      sql`token = any(${textsOfAnyLength(tokens)}::text[])`,
      'enrollments-by-token',
    )
    return tokens.map((token) => found.find((one) => one.token === token))
  })

export const findByOwners = (
  db: Db,
  kind: OwnerKind,
  ids: readonly string[],
): Promise<readonly StoredEnrollment[]> => findWhere(db, sql`${ownerColumns[kind]} = any(${ids})`)

export const isOutstanding = async (db: Db, identityId: string, method: string): Promise<boolean> =>
  (await findWhere(db, sql`identity_id = ${identityId} and method = ${method}`, 'outstanding-enrollment'))
    .length > 0

const columnsOfNew = (row: Enrollment): object => columnValues(enrollment, row.id, row, {})

/** Leaves out those that exist or have ended, whose authority is deleted, or of whose method one is outstanding. */
const insert = (list: string): Sql =>
  insertListSql(
    enrollment,
    list,
    sql`
   where (select id from ended_enrollment where ended_enrollment.id = entry.id) is null -- by its key, never all rows
     and (entry.ca_id is null or exists (select from ca where ca.id = entry.ca_id for key share))
      on conflict do nothing`,
  )

export async function insertEnrollments(
  tx: Tx,
  enrollments: readonly Enrollment[],
): Promise<readonly RowChange[]> {
  const list = JSON.stringify(enrollments.map(columnsOfNew))
  return insertRows(tx, enrollment, insert(list), 'insert-enrollments')
}

/** Stores another token and another end. */
export async function renewEnrollment(
  tx: Tx,
  id: string,
  expiresAt: Date,
  check: (before: StoredEnrollment) => void,
): Promise<readonly RowChange[]> {
  const [before] = await findWhere(tx, sql`id = ${id} for update`)
  if (!before) return []
  check(before)
  const { rows } = await tx.query(sql`
    update enrollment
       set token = ${randomUUID()}, expires_at = ${expiresAt}, claimed_until = null, claim_hash = null,
           updated_at = clock_timestamp()
     where id = ${id}
 returning ${columns}`)
  return rows.map((row) => enrollmentChange(id, before, storedOf(row)))
}

/** Reserves the enrollment for one request. Others are refused until the claim expires or is released. */
export async function claim(db: Db, { id, token }: Enrollment, hash: string): Promise<boolean> {
  const { rows } = await db.query(
    sql`
    update enrollment
       set claimed_until = clock_timestamp() + make_interval(secs => ${CLAIM_SECONDS}), claim_hash = ${hash}
     where id = ${id} and token = ${token} and (claimed_until is null or claimed_until < clock_timestamp())
 returning id`,
    'claim-enrollment',
  )
  return rows.length > 0
}

/** Ends a claim without effect: the next request may claim at once. */
export async function release(db: Db, { id }: Enrollment, hash: string): Promise<void> {
  await db.query(sql`
    update enrollment set claimed_until = null, claim_hash = null where id = ${id} and claim_hash = ${hash}`)
}

/** Those that have not expired, and when the last one does. */
export async function countEnrollments(
  db: Pick<Db, 'query'>,
  now: Date,
): Promise<{ readonly count: number; readonly until: Date | null }> {
  const { rows } = await db.query<{ readonly count: number; readonly until: Date | null }>(
    sql`select count(*)::int as count, max(expires_at) as until from enrollment where expires_at > ${now}`,
  )
  return onlyRow(rows)
}

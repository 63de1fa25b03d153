import { authenticator, type RowOf } from '@overlay/model'
import { Fault, invalid, notFound, type Position } from '@overlay/rpc'
import { type Actor, batchInserter, type ChangeLog, type RowChange } from '@overlay/store/change-log'
import {
  changeRow,
  columnsOf,
  columnValues,
  deleteRows,
  insertListSql,
  insertRows,
  plainOfNew,
  rowOf,
} from '@overlay/store/kind-store'
import type { Db, Tx } from '@overlay/store/postgres'
import sql, { type Sql } from 'sql-template-tag'

export type Authenticator = RowOf<typeof authenticator>

export async function authenticatorById(db: Db, id: string): Promise<Authenticator | undefined> {
  const { rows } = await db.query(sql`select ${columnsOf(authenticator)} from authenticator where id = ${id}`)
  return rows[0] && (rowOf(authenticator, rows[0]) as unknown as Authenticator)
}

export async function authenticatorOfEnrollment(db: Db, enrollmentId: string): Promise<string | undefined> {
  const { rows } = await db.query<{ id: string }>(
    sql`select id from authenticator where enrollment_id = ${enrollmentId}`,
  )
  return rows[0]?.id
}

/**
 * wire: an admin may add one authenticator of each method (else MAX_AUTHENTICATOR_METHODS_REACHED); enrollments may add
 * more. Identities of routers have none.
 */
export async function refuseSecond(
  db: Db,
  { identityId, identityType }: { readonly identityId: string; readonly identityType: string },
  method: string,
): Promise<void> {
  if (identityType === 'Router')
    throw invalid('identityId', 'router identities may not have authenticators', identityId)
  const { rows } = await db.query(sql`
    select from authenticator where identity_id = ${identityId} and method = ${method} limit 1`)
  if (rows.length > 0) throw new Fault('MAX_AUTHENTICATOR_METHODS_REACHED')
}

/** The same, with a lock that keeps concurrent requests from adding one. */
export async function lockAndRefuseSecond(tx: Tx, identityId: string, method: string): Promise<void> {
  const { rows } = await tx.query<{ type: string }>(
    sql`select type from identity where id = ${identityId} for no key update`,
  )
  if (!rows[0]) throw notFound('identity', identityId)
  await refuseSecond(tx, { identityId, identityType: rows[0].type }, method)
}

export interface NewAuthenticator
  extends Pick<Authenticator, 'id' | 'identityId' | 'username' | 'password' | 'certPem' | 'fingerprint'> {
  readonly method: 'updb' | 'cert'
  readonly isIssuedByNetwork: boolean
  readonly enrollmentId: string | null
  readonly caId: string | null
  readonly tags: Authenticator['tags']
}

/** Undefined: its enrollment has added one already, or identity or authority do not exist. */
export const insertAuthenticator = async (tx: Tx, row: NewAuthenticator): Promise<RowChange | undefined> =>
  (await insertAuthenticators(tx, [row]))[0]

const columnsOfNew = (row: NewAuthenticator): object => columnValues(authenticator, row.id, row, row.tags)

/** Finds each identity by its key: the planner expects 100 entries, and would read all identities to join them. */
const insertSome = (list: string): Sql =>
  insertListSql(
    authenticator,
    list,
    sql`
     cross join lateral (select from identity where identity.id = entry.identity_id for key share) as person
     where entry.ca_id is null or exists (select from known_ca where known_ca.id = entry.ca_id for key share)
        on conflict (enrollment_id) do nothing`,
  )

const insertAuthenticators = (tx: Tx, authenticators: readonly NewAuthenticator[]): Promise<RowChange[]> =>
  insertRows(
    tx,
    authenticator,
    insertSome(JSON.stringify(authenticators.map(columnsOfNew))),
    'insert-authenticators',
  )

/** Inserts authenticators of enrollments: concurrent requests share one statement. Undefined: as above. */
export function authenticatorInserter(
  changeLog: ChangeLog,
): (row: NewAuthenticator & { readonly by: Actor }) => Promise<Position | undefined> {
  const insert = batchInserter(changeLog, authenticator.kind, insertSome)
  return (row) => {
    const { id, tags, by } = row
    return insert({ id, columns: columnsOfNew(row), plain: plainOfNew(authenticator, id, row, tags), by })
  }
}

/** A certificate by its PEM and fingerprint. */
interface Certificate {
  readonly pem: string
  readonly fingerprint: string
}

/** Stores a certificate that replaces the present one once it is verified. Undefined: the present one differs. */
export const storePending = (
  tx: Tx,
  { id, fingerprint }: Pick<Authenticator, 'id' | 'fingerprint'>,
  pending: Certificate,
): Promise<RowChange | undefined> =>
  changeRow(
    tx,
    authenticator,
    sql`id = ${id} and fingerprint = ${fingerprint}`,
    sql`unverified_cert_pem = ${pending.pem}, unverified_fingerprint = ${pending.fingerprint}`,
  )

/** Replaces the present certificate by the pending one. Undefined: another request was faster. */
export const usePending = (tx: Tx, id: string, fingerprint: string): Promise<RowChange | undefined> =>
  changeRow(
    tx,
    authenticator,
    sql`id = ${id} and unverified_fingerprint = ${fingerprint}`,
    sql`cert_pem = unverified_cert_pem, fingerprint = unverified_fingerprint,
        unverified_cert_pem = null, unverified_fingerprint = null`,
  )

/**
 * Stores another hash of the same password, unless the password has been changed. It is no change to anyone: no audit, no
 * change row, the same `updatedAt`. Logins that have compared the former hash remain valid.
 */
export async function replaceHash(db: Db, id: string, former: string, hash: string): Promise<void> {
  await db.query(
    sql`
    update authenticator set password = ${hash}, rehashed = ${digestOfPair(former, sql`${hash}::text`)}
     where id = ${id} and password = ${former}`,
    'replace-hash',
  )
}

/**
 * Whether an authenticator has this password hash, or another of the same password that has replaced it. Null: no
 * password.
 */
export const hasPassword = (hash: string | null | Sql, of: Sql = sql`authenticator`): Sql => sql`
  (${of}.password is not distinct from ${hash} or ${of}.rehashed = ${digestOfPair(hash, sql`${of}.password`)})`

const digestOfPair = (former: string | null | Sql, hash: Sql): Sql =>
  sql`sha256(convert_to(${former}::text || ${hash}, 'UTF8'))`

export const removeAuthenticator = (tx: Tx, id: string): Promise<RowChange[]> =>
  removeAuthenticators(tx, sql`id = ${id}`)

export const removeAuthenticatorsOf = (tx: Tx, identityIds: readonly string[]): Promise<RowChange[]> =>
  removeAuthenticators(tx, sql`identity_id = any(${identityIds})`)

export const removeAuthenticators = (tx: Tx, which: Sql): Promise<RowChange[]> =>
  deleteRows(tx, authenticator, which)

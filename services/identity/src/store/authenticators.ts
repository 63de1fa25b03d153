import { authenticator, type RowOf } from '@overlay/model'
import type { Actor, ChangeLog, RowChange } from '@overlay/platform/change-log'
import { changeOf, columnsOf, columnValues, rowOf } from '@overlay/platform/kind-store'
import { batch, type Db, type Tx } from '@overlay/platform/postgres'
import { Fault, invalid, notFound, ownContext, type Position } from '@overlay/rpc'
import sql, { type Sql } from 'sql-template-tag'

export type Authenticator = RowOf<typeof authenticator>

export async function authenticatorById(db: Db, id: string): Promise<Authenticator | undefined> {
  const { rows } = await db.query(sql`select ${columnsOf(authenticator)} from authenticator where id = ${id}`)
  return rows[0] && (rowOf(authenticator, rows[0]) as unknown as Authenticator)
}

/** wire: one authenticator of each method by hand; enrollments may bring more. None for the identity of a router. */
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

/** Again, now that nobody else can add one at the same time. */
export async function mayHaveOneMore(tx: Tx, identityId: string, method: string): Promise<void> {
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

/** Unless its enrollment has brought one already, or identity or authority have gone. */
export const insertAuthenticator = async (tx: Tx, one: NewAuthenticator): Promise<RowChange | undefined> =>
  (await insertAuthenticators(tx, [one]))[0]

export async function insertAuthenticators(
  tx: Tx,
  many: readonly NewAuthenticator[],
): Promise<readonly RowChange[]> {
  const list = many.map((one) => columnValues(authenticator, one.id, one, one.tags))
  const { rows } = await tx.query(
    sql`
    insert into authenticator (id, method, identity_id, username, password, cert_pem, fingerprint,
                               is_issued_by_network, enrollment_id, ca_id, tags)
    select made.id, made.method, identity.id, made.username, made.password, made.cert_pem, made.fingerprint,
           made.is_issued_by_network, made.enrollment_id, made.ca_id, made.tags
      from jsonb_to_recordset(${JSON.stringify(list)}::jsonb) as made (
           id text, method text, identity_id text, username text, password text, cert_pem text,
           fingerprint text, is_issued_by_network boolean, enrollment_id text, ca_id text, tags jsonb)
      join identity on identity.id = made.identity_id
     where made.ca_id is null or exists (select from known_ca where known_ca.id = made.ca_id for key share)
       for key share of identity
        on conflict (enrollment_id) do nothing
 returning ${columnsOf(authenticator)}`,
    'insert-authenticators',
  )
  return rows.map((stored) => {
    const row = rowOf(authenticator, stored)
    return changeOf(authenticator, row.id, null, row)
  })
}

/** Adds what enrollments bring; what waits together goes in one transaction. Nothing: as above. */
export function authenticatorAdder(
  changeLog: ChangeLog,
): (one: NewAuthenticator & { readonly by: Actor }) => Promise<Position | undefined> {
  const context = ownContext(new AbortController().signal)
  return batch(async (entries) => {
    const { result, position } = await changeLog.write(context, async (tx) => {
      const made = await insertAuthenticators(
        tx,
        entries.map(({ by: _, ...one }) => one),
      )
      const actors = new Map(entries.map(({ id, by }) => [id, by]))
      return {
        result: new Set(made.map(({ id }) => id)),
        changes: made.map((change) => ({ ...change, by: actors.get(change.id) })),
      }
    })
    return entries.map(({ id }) => (result.has(id) ? position : undefined))
  })
}

/** Takes authenticators away beside the uniform way, and tells it alike. */
export async function removeAuthenticators(tx: Tx, which: Sql): Promise<RowChange[]> {
  const { rows } = await tx.query(sql`
    delete from authenticator where ${which} returning ${columnsOf(authenticator)}`)
  return rows.map((stored) => {
    const row = rowOf(authenticator, stored)
    return changeOf(authenticator, row.id, row, null)
  })
}

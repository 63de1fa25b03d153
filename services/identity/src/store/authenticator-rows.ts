import { authenticator, type RowOf } from '@overlay/model'
import { changeOf, columnsOf, type Db, type RowChange, rowOf, type Tx } from '@overlay/platform'
import { Fault, invalid, notFound } from '@overlay/rpc'
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
export async function insertAuthenticator(tx: Tx, one: NewAuthenticator): Promise<RowChange | undefined> {
  const { rows } = await tx.query(sql`
    insert into authenticator (id, method, identity_id, username, password, cert_pem, fingerprint,
                               is_issued_by_network, enrollment_id, ca_id, tags)
    select ${one.id}, ${one.method}, identity.id, ${one.username}, ${one.password}, ${one.certPem},
           ${one.fingerprint}, ${one.isIssuedByNetwork}, ${one.enrollmentId}, ${one.caId},
           ${JSON.stringify(one.tags)}::jsonb
      from identity
     where id = ${one.identityId}
       and (${one.caId}::text is null or exists (select from known_ca where id = ${one.caId} for key share))
       for key share
        on conflict (enrollment_id) do nothing
 returning ${columnsOf(authenticator)}`)
  return rows[0] && changeOf(authenticator, one.id, null, rowOf(authenticator, rows[0]))
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

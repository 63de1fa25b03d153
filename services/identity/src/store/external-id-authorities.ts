import type { Db } from '@overlay/store/postgres'
import sql from 'sql-template-tag'

/** The authority that is bound to this external id of the identity, if there is one. */
export async function authorityOfExternalId(
  db: Db,
  identityId: string,
  externalId: string,
): Promise<string | undefined> {
  const { rows } = await db.query<{ caId: string }>(
    sql`
    select ca_id as "caId" from external_id_authority
     where identity_id = ${identityId} and external_id = ${externalId}`,
    'authority-of-external-id',
  )
  return rows[0]?.caId
}

/** Binds an external id to the first authority that certifies it. False: another one is bound. */
export async function bindExternalId(
  db: Db,
  identityId: string,
  externalId: string,
  caId: string,
): Promise<boolean> {
  await db.query(sql`
    insert into external_id_authority (identity_id, external_id, ca_id)
    select identity.id, identity.external_id, known_ca.id
      from identity, known_ca
     where identity.id = ${identityId} and identity.external_id = ${externalId} and known_ca.id = ${caId}
       for key share
        on conflict (identity_id) do update set external_id = excluded.external_id, ca_id = excluded.ca_id
     where external_id_authority.external_id <> excluded.external_id`)
  return (await authorityOfExternalId(db, identityId, externalId)) === caId
}

/** For an identity whose external id changes: any authority may certify the new one. */
export async function unbindExternalId(db: Db, identityId: string): Promise<void> {
  await db.query(sql`delete from external_id_authority where identity_id = ${identityId}`)
}

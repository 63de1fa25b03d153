import { randomUUID } from 'node:crypto'
import type { RowChange } from '@overlay/platform/change-log'
import { type Db, onlyRow, seal, type Tx, unseal } from '@overlay/platform/postgres'
import { type CertifiedKey, notAfterOf } from '@overlay/x509'
import sql from 'sql-template-tag'

export type KeyRole = 'root' | 'signing' | 'server'

/** A decrypted key. */
export interface Key extends CertifiedKey {
  readonly id: string
  readonly role: KeyRole
  readonly state: 'next' | 'active' | 'retired'
}

type Row = Omit<Key, 'pem' | 'privateKey'> & { readonly certificate: string; readonly private_key: string }

/** All keys, decrypted. Throws when the secret does not fit. */
export async function readKeys(db: Db, secret: string): Promise<readonly Key[]> {
  const { rows } = await db.query<Row>(
    sql`select id, role, state, certificate, private_key from key order by role, created_at, id`,
  )
  return rows.map(({ certificate, private_key, ...rest }) => ({
    ...rest,
    pem: certificate,
    privateKey: unseal(secret, rest.id, private_key),
  }))
}

export const activeKey = (keys: readonly Key[], role: KeyRole): Key | undefined =>
  keys.find((key) => key.role === role && key.state === 'active')

/** Excludes other writers of keys until the transaction ends. */
export async function lockKeys(tx: Tx): Promise<void> {
  await tx.query(sql`select pg_advisory_xact_lock(hashtextextended('pki keys', 0))`)
}

export async function addActiveKey(
  tx: Tx,
  secret: string,
  role: KeyRole,
  { pem, privateKey }: CertifiedKey,
): Promise<RowChange> {
  const id = randomUUID()
  const { rows } = await tx.query<Row>(sql`
    insert into key (id, role, state, certificate, private_key, not_after)
    values (${id}, ${role}, 'active', ${pem}, ${seal(secret, id, privateKey)}, ${notAfterOf(pem)})
 returning id, role, state, certificate`)
  return keyChange(null, onlyRow(rows))
}

/** Stores a newer certificate for the same key. */
export async function replaceCertificate(tx: Tx, key: Key, pem: string): Promise<RowChange> {
  const { rows } = await tx.query<Row>(sql`
    update key set certificate = ${pem}, not_after = ${notAfterOf(pem)}, updated_at = now()
     where id = ${key.id}
 returning id, role, state, certificate`)
  return keyChange({ id: key.id, role: key.role, state: key.state, certificate: key.pem }, onlyRow(rows))
}

/** The payloads of all keys, for followers that load. */
export async function* keyPayloads(db: Db): AsyncIterable<{ readonly id: string; readonly json: object }> {
  const { rows } = await db.query<Pick<Key, 'id' | 'role' | 'state'>>(
    sql`select id, role, state from key order by id`,
  )
  for (const { id, role, state } of rows) yield { id, json: { role, state } }
}

const keyChange = (before: object | null, after: Omit<Row, 'private_key'>): RowChange => ({
  kind: 'keys',
  id: after.id,
  before,
  after,
  payload: { role: after.role, state: after.state },
})

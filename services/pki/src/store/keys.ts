import { randomUUID } from 'node:crypto'
import type { RowChange } from '@overlay/store/change-log'
import { type Db, onlyRow, seal, type Tx, unseal } from '@overlay/store/postgres'
import { notAfterOf } from '@overlay/x509'
import sql from 'sql-template-tag'
import type { KeyFacts } from '../domain/planned-key.js'
import { keyChange, stateColumns } from './key-states.js'

/** A key with a certificate. */
export interface Key extends KeyFacts {
  readonly role: 'root' | 'signing' | 'server'
  /** Its certificate, PEM. */
  readonly pem: string
  /** PEM of the certificates between a provided one and its root, the lowest first. */
  readonly chain: string
  /** Of a root: its certificate by the root that was active before. */
  readonly crossPem: string | null
  /** Of the network. null: its certificate names it. */
  readonly trustDomain: string | null
  /** The encrypted private key. null: it is elsewhere. */
  readonly sealed: string | null
}

export interface NewKey extends Pick<Key, 'role' | 'state' | 'pem'>, Partial<Pick<Key, 'source' | 'chain'>> {
  /** PKCS#8, PEM. */
  readonly privateKey: string | undefined
  readonly crossPem?: string | undefined
  readonly trustDomain?: string | undefined
}

const columns = sql`
  ${stateColumns}, role, certificate as pem, chain, cross_certificate as "crossPem", trust_domain as "trustDomain",
  private_key as sealed`

/** All keys, oldest first within a role. */
export async function readKeys(db: Db): Promise<readonly Key[]> {
  const { rows } = await db.query<Key>(sql`select ${columns} from key order by role, created_at, id`)
  return rows
}

/** PKCS#8, PEM. Throws when the secret does not fit, or the key is not here. */
export function privateKeyOf({ id, role, sealed }: Key, secret: string): string {
  if (sealed === null) throw new Error(`the private key of ${role} ${id} is not in this network`)
  return unseal(secret, id, sealed)
}

export async function addKey(tx: Tx, secret: string, key: NewKey, now: Date): Promise<RowChange> {
  const id = randomUUID()
  const { role, state, pem, privateKey, source = 'generated', chain = '', crossPem, trustDomain } = key
  const sealed = privateKey === undefined ? null : seal(secret, id, privateKey)
  const activeAt = state === 'active' ? now : null
  const retiredAt = state === 'retired' ? now : null
  const { rows } = await tx.query<Key>(sql`
    insert into key (id, role, state, source, certificate, chain, cross_certificate, trust_domain, private_key, not_after,
                     created_at, active_at, retired_at)
    values (${id}, ${role}, ${state}, ${source}, ${pem}, ${chain}, ${crossPem}, ${trustDomain}, ${sealed},
            ${notAfterOf(pem)}, ${now}, ${activeAt}, ${retiredAt})
 returning ${columns}`)
  return keyChange(null, withCertificate(onlyRow(rows)))
}

/** Stores a newer certificate for the same key. */
export async function replaceCertificate(tx: Tx, key: Key, pem: string, chain = ''): Promise<RowChange> {
  const { rows } = await tx.query<Key>(sql`
    update key set certificate = ${pem}, chain = ${chain}, not_after = ${notAfterOf(pem)}, updated_at = now()
     where id = ${key.id}
 returning ${columns}`)
  return keyChange(withCertificate(key), withCertificate(onlyRow(rows)))
}

const withCertificate = (key: Key) => ({ ...key, certificate: key.pem })

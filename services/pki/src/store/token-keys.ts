import type { RowChange } from '@overlay/store/change-log'
import { type Db, onlyRow, seal, type Tx, unseal } from '@overlay/store/postgres'
import sql from 'sql-template-tag'
import type { KeyFacts } from '../domain/planned-key.js'
import { keyChange, stateColumns } from './key-states.js'

/** A key with its secret half. */
export interface NewTokenKey {
  /** RFC 7638 thumbprint. */
  readonly id: string
  readonly publicJwk: object
  /** PKCS#8, PEM. */
  readonly privateKey: string
}

export interface TokenKey extends KeyFacts, Pick<NewTokenKey, 'publicJwk'> {
  readonly role: 'token'
}

const columns = sql`${stateColumns}, public_jwk as "publicJwk", 'token' as role`

/** All of them, oldest first. */
export async function tokenKeys(db: Db): Promise<readonly TokenKey[]> {
  const { rows } = await db.query<TokenKey>(sql`select ${columns} from token_key order by created_at, id`)
  return rows
}

/** PKCS#8, PEM. Throws when the secret does not fit. */
export async function tokenPrivateKey(db: Db, secret: string, id: string): Promise<string> {
  const { rows } = await db.query<{ readonly key: string }>(
    sql`select private_key as key from token_key where id = ${id}`,
  )
  return unseal(secret, id, onlyRow(rows).key)
}

export async function addTokenKey(
  tx: Tx,
  secret: string,
  { id, publicJwk, privateKey }: NewTokenKey,
  { state, source }: { readonly state: 'active' | 'next'; readonly source: KeyFacts['source'] },
  now: Date,
): Promise<RowChange> {
  const activeAt = state === 'active' ? now : null
  const { rows } = await tx.query<TokenKey>(sql`
    insert into token_key (id, state, source, public_jwk, private_key, created_at, active_at)
    values (${id}, ${state}, ${source}, ${JSON.stringify(publicJwk)}, ${seal(secret, id, privateKey)}, ${now},
            ${activeAt})
 returning ${columns}`)
  return keyChange(null, onlyRow(rows))
}

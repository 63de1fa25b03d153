import type { RowChange } from '@overlay/store/change-log'
import { type Db, onlyRow, seal, type Tx, unseal } from '@overlay/store/postgres'
import sql from 'sql-template-tag'
import type { KeyFacts, TokenRole } from '../domain/planned-key.js'
import { keyChange, stateColumns, tokenTables } from './key-states.js'

/** A key with its secret half. */
export interface NewTokenKey {
  /** RFC 7638 thumbprint. */
  readonly id: string
  readonly publicJwk: object
  /** PKCS#8, PEM. */
  readonly privateKey: string
}

export interface TokenKey extends KeyFacts, Pick<NewTokenKey, 'publicJwk'> {
  readonly role: TokenRole
}

const columnsOf = (role: TokenRole) => sql`${stateColumns}, public_jwk as "publicJwk", ${role}::text as role`

/** Those of both roles, oldest first within a role. */
export async function tokenKeys(db: Db): Promise<readonly TokenKey[]> {
  const { rows } = await db.query<TokenKey>(sql`
    select ${columnsOf('token')} from token_key union all select ${columnsOf('session')} from session_key
     order by role desc, "createdAt", id`)
  return rows
}

/** PKCS#8, PEM. Throws when the secret does not fit. */
export async function tokenPrivateKey(
  db: Db,
  secret: string,
  { id, role }: Pick<TokenKey, 'id' | 'role'>,
): Promise<string> {
  const { rows } = await db.query<{ readonly key: string }>(
    sql`select private_key as key from ${tokenTables[role]} where id = ${id}`,
  )
  return unseal(secret, id, onlyRow(rows).key)
}

export async function addTokenKey(
  tx: Tx,
  secret: string,
  { id, publicJwk, privateKey }: NewTokenKey,
  { role, state, source }: Pick<TokenKey, 'role' | 'source'> & { readonly state: 'active' | 'next' },
  now: Date,
): Promise<RowChange> {
  const activeAt = state === 'active' ? now : null
  const { rows } = await tx.query<TokenKey>(sql`
    insert into ${tokenTables[role]} (id, state, source, public_jwk, private_key, created_at, active_at)
    values (${id}, ${state}, ${source}, ${JSON.stringify(publicJwk)}, ${seal(secret, id, privateKey)}, ${now},
            ${activeAt})
 returning ${columnsOf(role)}`)
  return keyChange(null, onlyRow(rows))
}

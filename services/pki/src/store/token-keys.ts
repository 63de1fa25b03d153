import type { RowChange } from '@overlay/platform/change-log'
import { type Db, onlyRow, seal, type Tx, unseal } from '@overlay/platform/postgres'
import sql, { type Sql } from 'sql-template-tag'
import type { TokenKeyState } from '../domain/token-key-plan.js'

/** A key with its secret half. */
export interface NewTokenKey {
  /** RFC 7638 thumbprint. */
  readonly id: string
  readonly publicJwk: object
  /** PKCS#8, PEM. */
  readonly privateKey: string
}

export type TokenKey = TokenKeyState & Pick<NewTokenKey, 'publicJwk'>

const columns = sql`
  id, state, public_jwk as "publicJwk", created_at as "createdAt", active_at as "activeAt", retired_at as "retiredAt"`

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
  state: 'active' | 'next',
  now: Date,
): Promise<RowChange> {
  const activeAt = state === 'active' ? now : null
  const { rows } = await tx.query<TokenKey>(sql`
    insert into token_key (id, state, public_jwk, private_key, created_at, active_at)
    values (${id}, ${state}, ${JSON.stringify(publicJwk)}, ${seal(secret, id, privateKey)}, ${now}, ${activeAt})
 returning ${columns}`)
  return keyChange(null, onlyRow(rows))
}

export const activateTokenKey = (tx: Tx, key: TokenKey, now: Date): Promise<RowChange> =>
  updateTokenKey(tx, key, sql`state = 'active', active_at = ${now}`)

export const retireTokenKey = (tx: Tx, key: TokenKey, now: Date): Promise<RowChange> =>
  updateTokenKey(tx, key, sql`state = 'retired', retired_at = ${now}`)

export async function removeTokenKey(tx: Tx, key: TokenKey): Promise<RowChange> {
  await tx.query(sql`delete from token_key where id = ${key.id}`)
  return keyChange(key, null)
}

async function updateTokenKey(tx: Tx, key: TokenKey, assignments: Sql): Promise<RowChange> {
  const { rows } = await tx.query<TokenKey>(
    sql`update token_key set ${assignments} where id = ${key.id} returning ${columns}`,
  )
  return keyChange(key, onlyRow(rows))
}

/** The payloads of all of them, for followers that load. */
export async function* tokenKeyPayloads(
  db: Db,
): AsyncIterable<{ readonly id: string; readonly json: object }> {
  for (const { id, state } of await tokenKeys(db)) yield { id, json: payloadOf({ state }) }
}

const payloadOf = ({ state }: Pick<TokenKey, 'state'>): object => ({ role: 'token', state })

function keyChange(before: TokenKey | null, after: TokenKey | null): RowChange {
  const id = (after ?? before)?.id ?? ''
  return {
    kind: 'keys',
    id,
    before: before && auditOf(before),
    after: after && auditOf(after),
    payload: after && payloadOf(after),
  }
}

const auditOf = ({ publicJwk: _, ...key }: TokenKey): object => ({ ...key, role: 'token' })

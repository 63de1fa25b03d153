import { createPrivateKey, type JsonWebKey, type KeyObject } from 'node:crypto'
import { TOKEN_ALGORITHM } from '@overlay/process/tokens'
import type { Db } from '@overlay/store/postgres'
import { type TokenKey, tokenKeys, tokenPrivateKey } from '../store/token-keys.js'

/** The keys of tokens, and the one that signs now. */
export interface TokenKeyring {
  readonly active: TokenKey & { readonly key: KeyObject }
  /** The public halves of all of them, as JWKs. */
  readonly jwks: readonly JsonWebKey[]
  /** How tokens name them. */
  readonly ids: readonly string[]
}

export async function readTokenKeyring(db: Db, secret: string): Promise<TokenKeyring> {
  const keys = await tokenKeys(db)
  const active = keys.find(({ state }) => state === 'active')
  if (!active) throw new Error('there is no active key of tokens')
  return {
    active: { ...active, key: createPrivateKey(await tokenPrivateKey(db, secret, active.id)) },
    jwks: keys.map(({ id, publicJwk }) => ({ ...publicJwk, kid: id, use: 'sig', alg: TOKEN_ALGORITHM })),
    ids: keys.map(({ id }) => id),
  }
}

import { createPublicKey, type JsonWebKey, type KeyObject } from 'node:crypto'
import { isUuid } from '@overlay/model'
import type { Context, Methods, PkiServiceService } from '@overlay/rpc'
import { compactVerify, decodeProtectedHeader, errors } from 'jose'
import {
  accessClaims,
  type Claims,
  idClaims,
  refreshClaims,
  type TokenFacts,
  type TokenLifetimes,
} from '../domain/oidc-claims.js'

/** Which tokens are issued. */
export interface Wanted {
  readonly access: boolean
  readonly refresh: boolean
  readonly id: boolean
  /** Of the access token: some of those that the client was granted. */
  readonly scopes: readonly string[]
  /** The code that is redeemed for them. */
  readonly code?: string
}

export interface Issued {
  readonly access?: string | undefined
  readonly refresh?: string | undefined
  readonly id?: string | undefined
  /** Of the refresh token. */
  readonly jti: string
  readonly accessExpiresAt: number // seconds
  readonly refreshExpiresAt: number
}

interface CommonClaims {
  readonly identityId: string
  readonly clientId: string
  readonly isExpired: boolean
}

/** What an access token or a refresh token of this provider says, whose signature is valid. */
export interface BearerClaims extends CommonClaims {
  readonly type: 'access' | 'refresh'
  readonly jti: string
  readonly apiSessionId: string
}

/** What an id token says. It names its API session by the login that opened it. */
export interface IdClaims extends CommonClaims {
  readonly type: 'id'
  readonly authTimeSeconds: number
  readonly nonce: string
}

export type TokenClaims = BearerClaims | IdClaims

export interface Tokens {
  issue(facts: TokenFacts, wanted: Wanted, context: Context): Promise<Issued>
  /** Undefined: it is no token of this provider. */
  read(token: string, context: Context): Promise<TokenClaims | undefined>
}

export interface TokenOptions {
  readonly issuer: string
  readonly lifetimes: TokenLifetimes
  readonly pki: Pick<Methods<PkiServiceService>, 'signTokens' | 'getTokenKeys'>
}

const LONGEST = 16_384
/** Of the keys that pki signs with. */
const ALGORITHM = 'RS256'
const KEYS_AGE_MS = 60_000
/** Between two reads of the keys that unknown key ids cause. */
const REFETCH_MS = 1000

/** Issues the tokens of API sessions and reads them again. pki has the keys. */
export function openTokens({ issuer, lifetimes, pki }: TokenOptions): Tokens {
  const keyOf = openKeys(pki)

  async function sign(claims: readonly Claims[], context: Context): Promise<(string | undefined)[]> {
    const { tokens } = await pki.signTokens(
      { claims: claims.map((one) => Buffer.from(JSON.stringify(one))) },
      context,
    )
    if (tokens.length !== claims.length) throw new Error('fewer tokens than claims')
    return tokens
  }

  return {
    async issue(facts, wanted, context) {
      const now = Math.floor(Date.now() / 1000)
      const { scopes, code } = wanted
      const forAccess = accessClaims({ ...facts, scopes }, now, lifetimes)
      const forRefresh = refreshClaims(facts, now, lifetimes)
      const [access, refresh] = wanted.access
        ? await sign([forAccess, ...(wanted.refresh ? [forRefresh] : [])], context)
        : []
      // a call of its own: it contains a hash of the access token
      const [id] = wanted.id
        ? await sign([idClaims(facts, now, lifetimes, { accessToken: access, code })], context)
        : []
      return {
        access,
        refresh,
        id,
        jti: forRefresh.jti,
        accessExpiresAt: now + lifetimes.accessSeconds,
        refreshExpiresAt: now + lifetimes.refreshSeconds,
      }
    },

    async read(token, context) {
      const keyId = keyIdOf(token)
      const key = keyId === undefined ? undefined : await keyOf(keyId, context)
      if (!key) return undefined
      try {
        const { payload } = await compactVerify(token, key, { algorithms: [ALGORITHM] })
        return claimsIn(JSON.parse(Buffer.from(payload).toString()), issuer)
      } catch (err) {
        if (err instanceof errors.JOSEError || err instanceof SyntaxError) return undefined
        throw err
      }
    },
  }
}

/** Before any key is looked at. Undefined: the token can not be one of ours. */
function keyIdOf(token: string): string | undefined {
  if (token.length > LONGEST) return undefined
  try {
    const { alg, kid } = decodeProtectedHeader(token)
    return alg === ALGORITHM && typeof kid === 'string' ? kid : undefined
  } catch {
    return undefined // the header is not readable
  }
}

/** The keys that verify tokens, cached. An unknown id causes a read, at most one a second. */
function openKeys(
  pki: TokenOptions['pki'],
): (id: string, context: Context) => Promise<KeyObject | undefined> {
  let keys: ReadonlyMap<string, KeyObject> = new Map()
  let readAt = Number.NEGATIVE_INFINITY
  let reading: Promise<void> | undefined

  async function read(context: Context): Promise<void> {
    const { jwks, keyIds } = await pki.getTokenKeys({}, context)
    const all = (JSON.parse(Buffer.from(jwks).toString()) as { keys: (JsonWebKey & { kid: string })[] }).keys
    const own = all.filter(({ kid }) => keyIds.includes(kid))
    keys = new Map(own.map((jwk) => [jwk.kid, createPublicKey({ key: jwk, format: 'jwk' })]))
    readAt = performance.now()
  }

  return async (id, context) => {
    const age = performance.now() - readAt
    if (age > KEYS_AGE_MS || (!keys.has(id) && age > REFETCH_MS)) {
      reading ??= read(context).finally(() => {
        reading = undefined
      })
      await reading
    }
    return keys.get(id)
  }
}

const types = new Map<unknown, TokenClaims['type']>([
  ['a', 'access'],
  ['r', 'refresh'],
  [undefined, 'id'],
])

function claimsIn(claims: unknown, issuer: string): TokenClaims | undefined {
  if (typeof claims !== 'object' || claims === null) return undefined
  const { iss, sub, aud, exp, jti, auth_time, nonce = '', z_t, z_asid } = claims as Record<string, unknown>
  const type = types.get(z_t)
  const [clientId] = Array.isArray(aud) ? aud : []
  if (iss !== issuer || !type || typeof exp !== 'number') return undefined
  if (typeof sub !== 'string' || typeof clientId !== 'string') return undefined
  const common = { identityId: sub, clientId, isExpired: exp * 1000 <= Date.now() }
  if (type === 'id') {
    if (typeof auth_time !== 'number' || typeof nonce !== 'string') return undefined
    return { ...common, type, authTimeSeconds: auth_time, nonce }
  }
  if (typeof z_asid !== 'string' || typeof jti !== 'string' || !isUuid(jti)) return undefined
  return { ...common, type, jti, apiSessionId: z_asid }
}

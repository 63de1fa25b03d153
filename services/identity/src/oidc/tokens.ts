import { isUuid } from '@overlay/model'
import { openTokenKeys, TOKEN_ALGORITHM } from '@overlay/process/tokens'
import { type Context, type Methods, ownContext, type PkiServiceService, type Positions } from '@overlay/rpc'
import { readTokenHead, TokenHeadError } from '@overlay/x509'
import { compactVerify, errors } from 'jose'
import type { Logger } from 'pino'
import {
  accessClaims,
  type Claims,
  idClaims,
  refreshClaims,
  type TokenFacts,
  type TokenLifetimes,
  totpClaims,
} from '../domain/oidc-claims.js'
import { READ_TOKEN_KEYS_MS, TOKEN_KEYS_MS } from '../limits.js'

/** Which tokens to issue. */
export interface TokenSelection {
  readonly access: boolean
  readonly refresh: boolean
  readonly id: boolean
  /** Of the access token: some of those that the client was granted. */
  readonly scopes: readonly string[]
  /** The code that is redeemed for them. */
  readonly code?: string
}

export interface IssuedTokens {
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
  issue(facts: TokenFacts, selection: TokenSelection, context: Context): Promise<IssuedTokens>
  /** A token that says that the second factor has just been passed. */
  issueTotp(
    session: Pick<TokenFacts, 'identityId' | 'apiSessionId'>,
    context: Context,
  ): Promise<{ readonly token: string; readonly issuedAtMs: number }>
  /** Undefined: it is no token of this provider. */
  read(token: string): Promise<TokenClaims | undefined>
  /** The keys may have changed. */
  reloadKeys(positions: Positions): void
}

export interface TokenOptions {
  readonly issuer: string
  readonly lifetimes: TokenLifetimes
  readonly pki: Pick<Methods<PkiServiceService>, 'signTokens' | 'getTokenKeys'>
  readonly log: Pick<Logger, 'warn'>
}

const algorithms = [TOKEN_ALGORITHM] as const

/** Issues the tokens of API sessions and reads them again. pki has the keys. */
export function openTokens({ issuer, lifetimes, pki, log }: TokenOptions): Tokens {
  const context = () => ownContext(AbortSignal.timeout(READ_TOKEN_KEYS_MS))
  const keys = openTokenKeys({ pki, context, log, maxAgeMs: TOKEN_KEYS_MS })

  async function sign(wanted: readonly Claims[], addsHash: boolean, context: Context): Promise<string[]> {
    const claims = wanted.map((one) => Buffer.from(JSON.stringify(one)))
    const { tokens } = await pki.signTokens({ claims, addsHash }, context)
    if (tokens.length !== claims.length) throw new Error('fewer tokens than claims')
    return tokens
  }

  return {
    reloadKeys: keys.reload,
    async issue(facts, selection, context) {
      const now = Math.floor(Date.now() / 1000)
      const { scopes, code } = selection
      const forAccess = accessClaims({ ...facts, scopes }, now, lifetimes)
      const forRefresh = refreshClaims(facts, now, lifetimes)
      const wanted = {
        ...(selection.access && { access: forAccess }),
        ...(selection.access && selection.refresh && { refresh: forRefresh }),
        ...(selection.id && { id: idClaims(facts, now, lifetimes, code) }),
      }
      const tokens = await sign(Object.values(wanted), selection.access && selection.id, context)
      return {
        ...Object.fromEntries(Object.keys(wanted).map((name, i) => [name, tokens[i]])),
        jti: forRefresh.jti,
        accessExpiresAt: now + lifetimes.accessSeconds,
        refreshExpiresAt: now + lifetimes.refreshSeconds,
      }
    },

    async issueTotp(session, context) {
      const now = Math.floor(Date.now() / 1000)
      const [token = ''] = await sign([totpClaims({ issuer, ...session }, now, lifetimes)], false, context)
      return { token, issuedAtMs: now * 1000 }
    },

    async read(token) {
      const keyId = keyIdOf(token)
      const key = keyId === undefined ? undefined : await keys.find(keyId)
      if (!key) return undefined
      try {
        const { payload } = await compactVerify(token, key, { algorithms: [...algorithms] })
        return claimsIn(JSON.parse(Buffer.from(payload).toString()), issuer)
      } catch (err) {
        if (err instanceof errors.JOSEError || err instanceof SyntaxError) return undefined
        throw err
      }
    },
  }
}

/** Undefined: no key may verify the token. */
function keyIdOf(token: string): string | undefined {
  try {
    return readTokenHead(token, algorithms).kid
  } catch (err) {
    if (err instanceof TokenHeadError) return undefined
    throw err
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

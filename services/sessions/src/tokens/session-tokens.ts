import { sign, verify } from 'node:crypto'
import { SESSION_TOKEN_ALGORITHM } from '@overlay/process/tokens'
import { isTokenText, readTokenHead, TokenHeadError } from '@overlay/x509'
import { LRUCache } from 'lru-cache'
import { claimsOf, isSigned, type SessionFacts, type SessionToken, tokenIn } from '../domain/session-token.js'
import { SIGNED_TOKENS, UNITS_PER_SIGNATURE, VERIFIED_TOKENS } from '../limits.js'
import type { SessionKey, SessionKeys } from './session-keys.js'

/** Signed tokens of sessions. */
export interface SessionTokens {
  /**
   * A token that is valid for half of the longest life at least. Signed once for each session while that holds. Undefined:
   * there is no key yet.
   */
  sign(session: SessionFacts): string | Promise<string | undefined>
  /** What the token says. Undefined: it is not valid. Fails while the published keys are unknown. `spend`: before a check. */
  verify(token: string, spend?: (units: number) => void): Promise<SessionToken | undefined>
  /** True: clients may keep it. They ask again before they hold one that routers refuse. */
  isFresh(token: SessionToken): boolean
}

interface Signed {
  readonly token: string
  readonly keyId: string
  readonly renewAtMs: number
}

export interface SessionTokensOptions {
  readonly keys: Pick<SessionKeys, 'signing' | 'find' | 'onRemoved'>
  readonly now?: () => number
}

const algorithms = [SESSION_TOKEN_ALGORITHM] as const
const ecdsa = { dsaEncoding: 'ieee-p1363' } as const

/** Signs and verifies, and keeps results: a client repeats its creates, and a router the token of each dial. */
export function openSessionTokens({ keys, now = Date.now }: SessionTokensOptions): SessionTokens {
  const signed = new LRUCache<string, Signed>({ max: SIGNED_TOKENS })
  const verified = new LRUCache<string, SessionToken>({ max: VERIFIED_TOKENS })
  keys.onRemoved(() => verified.clear())

  function signWith({ id: keyId, key, tokenMs, issuer }: SessionKey, session: SessionFacts): string {
    const at = Math.floor(now() / 1000) * 1000 // as tokens write it
    const known = signed.get(session.id)
    if (known?.keyId === keyId && at < known.renewAtMs) return known.token
    const header = { alg: SESSION_TOKEN_ALGORITHM, kid: keyId, typ: 'JWT' }
    const input = `${encode(header)}.${encode(claimsOf(session, issuer, at, tokenMs))}`
    const signature = sign('sha256', Buffer.from(input), { key, ...ecdsa })
    const token = `${input}.${signature.toString('base64url')}`
    signed.set(session.id, { token, keyId, renewAtMs: at + tokenMs / 2 })
    return token
  }

  async function read(token: string, spend?: (units: number) => void): Promise<SessionToken | undefined> {
    const head = headOf(token)
    const content = head && tokenIn(head.claims)
    const key = content && (await keys.find(head.kid))
    if (!key) return undefined
    spend?.(UNITS_PER_SIGNATURE)
    const at = token.lastIndexOf('.')
    const signature = Buffer.from(token.slice(at + 1), 'base64url')
    const isValid = verify('sha256', Buffer.from(token.slice(0, at)), { key, ...ecdsa }, signature)
    return isValid ? content : undefined
  }

  return {
    sign(session) {
      const key = keys.signing()
      return key instanceof Promise
        ? key.then((loaded) => loaded && signWith(loaded, session))
        : signWith(key, session)
    },
    async verify(token, spend) {
      const found = verified.get(token) ?? (await read(token, spend))
      if (!found || found.expiresAtMs <= now()) return undefined
      verified.set(token, found)
      return found
    },
    isFresh: ({ issuedAtMs, expiresAtMs }) => now() < (issuedAtMs + expiresAtMs) / 2,
  }
}

/** What a text that a router lists names a session by: the id in a signed token, of which nothing is verified, or itself. */
export const sessionKeyIn = (token: string): string => {
  const id = isSigned(token) ? headOf(token)?.claims.jti : undefined
  return typeof id === 'string' && isTokenText(id) ? id : token
}

const encode = (part: object): string => Buffer.from(JSON.stringify(part)).toString('base64url')

function headOf(token: string) {
  try {
    return readTokenHead(token, algorithms)
  } catch (err) {
    if (err instanceof TokenHeadError) return undefined
    throw err
  }
}

import { hash } from 'node:crypto'
import { isUuid } from '@overlay/model'
import { metrics } from '@overlay/process'
import type { TokenKeys } from '@overlay/process/tokens'
import { type ApiSession, type Context, Fault, type IdentityServiceService, type Methods } from '@overlay/rpc'
import { type Followed, type FollowLog, isAtLeast } from '@overlay/store/change-log'
import { type Credentials, type SessionStore, unauthenticated } from '../http/session.js'
import { FLUSH_BATCH, MAX_TRIED_BEARERS, SESSION_CACHE_BYTES } from '../limits.js'
import { RefusedToken, verifyAccessToken } from './access-token.js'
import { type Gauged, openCache } from './cache.js'
import { bearerSession, type CachedSession, cachedSession, setStoredActivity } from './session.js'
import type { WritePositions } from './write-positions.js'

/** API sessions by token of a stored session, or by access token. */
export interface Sessions extends SessionStore {
  readonly gauged: Gauged
  cached(credentials: Credentials): CachedSession | undefined
  find(credentials: Credentials): CachedSession | Promise<CachedSession>
  /** Adds a session that this gateway has just created. */
  add(session: ApiSession): CachedSession
  /** Something in `tag` has changed: `api-sessions <id>`, `identities <id>`, `keys <id>`. */
  drop(tag: string): void
  dropAll(): void
  /** Reports to the owner the sessions that were active since the last flush. */
  flush(): Promise<void>
}

export interface SessionsOptions {
  readonly identity: Pick<
    Methods<IdentityServiceService>,
    'getApiSession' | 'getBearerSession' | 'markActivity'
  >
  readonly tokenKeys: Pick<TokenKeys, 'find'>
  /** Of access tokens. */
  readonly issuer: string
  readonly writePositions: WritePositions
  readonly followed: () => Followed
  readonly log: FollowLog
  /** For calls that no single request waits for. */
  readonly context: () => Context
  readonly maxBytes?: number
  readonly now?: () => number
}

const SCHEMA = 'identity'

export function openSessions(options: SessionsOptions): Sessions {
  const { identity, tokenKeys, issuer, writePositions, followed, log, context, now = Date.now } = options
  const { maxBytes = SESSION_CACHE_BYTES } = options
  const active = new Set<CachedSession>()
  const cache = openCache<CachedSession>(
    maxBytes,
    ({ id, identityId, keyId }) => [
      `api-sessions ${id}`,
      `identities ${identityId}`,
      ...(keyId === undefined ? [] : [`keys ${keyId}`]),
    ],
    ({ json }) => json.length + 800,
  )

  /** True when no change that ends the session can have been missed, nor one that completes it. */
  function isValid(session: CachedSession, at: number): boolean {
    if (awaitsFactor(session)) return false
    if (
      at - session.usedAtMs > session.timeoutSeconds * 1000 ||
      at >= session.endsAtMs ||
      at >= session.countsUntilMs
    )
      return false
    const source = followed()
    if (!source.isFresh()) return false
    const written = writePositions.withoutAdditions()[SCHEMA]
    return isAtLeast(source.positions()[SCHEMA], written) || isAtLeast(session.position, written)
  }

  /** A session that is still cached exists at the position of the changes received so far. */
  function advance(session: CachedSession): CachedSession {
    const received = followed().positions()[SCHEMA]
    if (isAtLeast(received, session.position)) session.position = received
    return session
  }

  function used(session: CachedSession, at: number): CachedSession {
    session.usedAtMs = at
    active.add(session)
    return session
  }

  async function mark(batch: readonly CachedSession[]): Promise<void> {
    const atMs = batch.map(({ usedAtMs }) => usedAtMs)
    try {
      const request = { apiSessionIds: batch.map(({ id }) => id), atMs, accessTokenIds: [] }
      const { unknownIds } = await identity.markActivity(request, context())
      batch.forEach((session, i) => {
        setStoredActivity(session, atMs[i] ?? 0)
      })
      for (const id of unknownIds) cache.drop(`api-sessions ${id}`)
    } catch (err) {
      for (const session of batch) active.add(session)
      log.warn({ err, sessions: batch.length }, 'last activity could not be stored, trying again later')
    }
  }

  function lookUp(key: string, at: number): CachedSession | undefined {
    const session = cache.get(key)
    return session && isValid(session, at) ? used(advance(session), at) : undefined
  }

  async function loadStored(
    token: string,
    bearers: readonly string[],
    refusal: () => Fault,
  ): Promise<CachedSession> {
    if (!isUuid(token)) throw refusal()
    const load = async (): Promise<CachedSession> => {
      const session = await identity.getApiSession({ token, bearerTokens: [...bearers] }, context())
      const cached = cachedSession(session, now())
      // tokens that do not count are tried again: the keys of their signer may be known by then
      return bearers.length === 0 ? cached : { ...cached, countsUntilMs: now() + session.secondTokenMs }
    }
    const at = now()
    try {
      return used(await cache.load(keyOf(token, ...bearers), writePositions.withoutAdditions(), load), at)
    } catch (err) {
      throw isRefusal(err) ? refusal() : err
    }
  }

  /** wire: an external token that the auth policy demands counts only for the requests that present it. */
  function withTokens(
    session: CachedSession,
    token: string,
    bearers: readonly string[],
    refusal: () => Fault,
  ): CachedSession | Promise<CachedSession> {
    if (!session.demandsToken || bearers.length === 0) return session
    const tried = bearers.slice(0, MAX_TRIED_BEARERS)
    return lookUp(keyOf(token, ...tried), now()) ?? loadStored(token, tried, refusal)
  }

  async function findStored(
    token: string,
    bearers: readonly string[],
    refusal: () => Fault,
  ): Promise<CachedSession> {
    return withTokens(await loadStored(token, [], refusal), token, bearers, refusal)
  }

  /** Everything that the token says is checked before the owner is asked. */
  async function loadBearer(token: string): Promise<CachedSession> {
    const claims = await verifyAccessToken(token, { issuer, keyOf: tokenKeys.find, now })
    const { apiSessionId, identityId } = claims
    const session = await identity.getBearerSession({ apiSessionId, identityId }, context())
    return bearerSession(session, token, claims, now())
  }

  /** The session of the first valid token. */
  async function firstBearer(tokens: readonly string[]): Promise<CachedSession> {
    const causes: unknown[] = []
    for (const token of tokens) {
      const at = now()
      const key = bearerKeyOf(token)
      const cached = lookUp(key, at)
      if (cached) return cached
      try {
        return used(await cache.load(key, writePositions.withoutAdditions(), () => loadBearer(token)), at)
      } catch (err) {
        if (!isRefusal(err)) throw err
        metrics.accessTokenRefused.inc({ reason: err instanceof RefusedToken ? err.reason : 'session' })
        causes.push(err)
      }
    }
    throw unauthenticated(causes[0])
  }

  return {
    gauged: cache.gauged,
    cached({ token, bearers: [bearer] }) {
      if (token !== '') return lookUp(keyOf(token), now())
      return bearer === undefined ? undefined : lookUp(bearerKeyOf(bearer), now())
    },
    find({ token, bearers }) {
      if (token !== '') {
        const refusal = bearers.length > 0 ? unauthenticated : () => new Fault('UNAUTHORIZED')
        const session = lookUp(keyOf(token), now())
        return session ? withTokens(session, token, bearers, refusal) : findStored(token, bearers, refusal)
      }
      const [first] = bearers
      if (first === undefined) throw unauthenticated()
      return lookUp(bearerKeyOf(first), now()) ?? firstBearer(bearers)
    },
    add(session) {
      const cached = cachedSession(session, now())
      // the change that ended it may have arrived before the answer that created it: then the owner decides
      if (session.secondTokenMs === 0 && isAtLeast(session.position, followed().positions()[SCHEMA]))
        cache.set(keyOf(session.token), cached)
      return used(cached, cached.usedAtMs)
    },
    drop: cache.drop,
    dropAll: cache.dropAll,
    async flush() {
      const batch = [...active]
      active.clear()
      for (let i = 0; i < batch.length; i += FLUSH_BATCH) await mark(batch.slice(i, i + FLUSH_BATCH))
    },
  }
}

/** The factor may be verified through another gateway, and the next request comes here before the change does. */
const awaitsFactor = ({ isPartial, demandsToken, countsUntilMs }: CachedSession): boolean =>
  isPartial && !(demandsToken && countsUntilMs === Number.POSITIVE_INFINITY) // that one awaits a token in each request

const isRefusal = (err: unknown): boolean =>
  err instanceof RefusedToken || (err instanceof Fault && err.code === 'UNAUTHORIZED')

/** An access token is no token of a stored session, whichever header it comes in: headers contain no NUL. */
const bearerKeyOf = (token: string): string => keyOf('', token)

/** Tokens are credentials: the cache holds only their digests. */
const keyOf = (...tokens: readonly string[]): string => hash('sha256', tokens.join('\0'), 'base64')

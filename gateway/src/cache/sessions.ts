import { createHash } from 'node:crypto'
import { isUuid } from '@overlay/model'
import { type ApiSession, type Context, Fault, type IdentityServiceService, type Methods } from '@overlay/rpc'
import type { SessionStore } from '../http/session.js'
import { openCache } from './cache.js'
import type { Followed, Log } from './follow.js'
import type { Gauged } from './lru.js'
import { type CachedSession, cachedSession, setStoredActivity } from './session.js'
import { isAtLeast, type WritePositions } from './write-positions.js'

/** API sessions by token. */
export interface Sessions extends SessionStore {
  readonly gauged: Gauged
  cached(token: string): CachedSession | undefined
  find(token: string): CachedSession | Promise<CachedSession>
  /** Adds a session that this gateway has just created. */
  add(session: ApiSession): CachedSession
  /** Something in `tag` has changed: `api-sessions <id>`, `identities <id>`. */
  drop(tag: string): void
  dropAll(): void
  /** Reports to the owner the sessions that were active since the last flush. */
  flush(): Promise<void>
}

export interface SessionsOptions {
  readonly identity: Pick<Methods<IdentityServiceService>, 'getApiSession' | 'markActivity'>
  readonly writePositions: WritePositions
  readonly followed: () => Followed
  readonly log: Log
  /** For calls that no single request waits for. */
  readonly context: () => Context
  readonly maxBytes?: number
  readonly now?: () => number
}

const SCHEMA = 'identity'
const BATCH = 1000

export function openSessions(options: SessionsOptions): Sessions {
  const { identity, writePositions, followed, log, context, now = Date.now } = options
  const { maxBytes = 64 << 20 } = options
  const active = new Set<CachedSession>()
  const cache = openCache<CachedSession>(
    maxBytes,
    ({ id, identityId }) => [`api-sessions ${id}`, `identities ${identityId}`],
    ({ json }) => json.length + 800,
  )

  /** True when no change that ends the session can have been missed. */
  function isValid(session: CachedSession, at: number): boolean {
    if (at - session.usedAtMs > session.timeoutSeconds * 1000 || at >= session.endsAtMs) return false
    const source = followed()
    if (!source.trusted()) return false
    const written = writePositions.positions()[SCHEMA]
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

  return {
    gauged: cache.gauged,
    cached: (token) => lookUp(keyOf(token), now()),
    find(token) {
      const key = keyOf(token)
      const at = now()
      const session = lookUp(key, at)
      if (session) return session
      if (!isUuid(token)) throw new Fault('UNAUTHORIZED')
      const load = async (): Promise<CachedSession> =>
        cachedSession(await identity.getApiSession({ token }, context()), now())
      return cache.load(key, writePositions.positions(), load).then((loaded) => used(loaded, at))
    },
    add(session) {
      const cached = cachedSession(session, now())
      // the change that ended it may have arrived before the answer that created it: then the owner decides
      if (isAtLeast(session.position, followed().positions()[SCHEMA])) cache.set(keyOf(session.token), cached)
      return used(cached, cached.usedAtMs)
    },
    drop: cache.drop,
    dropAll: cache.dropAll,
    async flush() {
      const batch = [...active]
      active.clear()
      for (let i = 0; i < batch.length; i += BATCH) await mark(batch.slice(i, i + BATCH))
    },
  }
}

/** Tokens are credentials: the cache holds only their digests. */
const keyOf = (token: string): string => createHash('sha256').update(token).digest('base64')

import { createHash } from 'node:crypto'
import { isUuid } from '@overlay/model'
import { type ApiSession, type Context, Fault, type IdentityServiceService, type Methods } from '@overlay/rpc'
import { openCache } from './cache.js'
import type { Followed, Log } from './follow.js'
import type { Gauged } from './lru.js'
import { type Session, sessionOf } from './session.js'
import { isAtLeast, type WritePositions } from './write-positions.js'

/** API sessions by token. */
export interface Sessions {
  readonly gauged: Gauged
  /** Where it is remembered; nobody is asked. */
  known(token: string): Session | undefined
  /** At once when it is known; the refusal of an unknown token is thrown. */
  find(token: string): Session | Promise<Session>
  /** A session that has just begun here. */
  remember(session: ApiSession): Session
  /** Something in `tag` has changed: `api-sessions <id>`, `identities <id>`. */
  drop(tag: string): void
  dropAll(): void
  /** Tells the owner who has been active since the last time. */
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
  const active = new Set<Session>()
  const cache = openCache<Session>(
    maxBytes,
    ({ id, identityId }) => [`api-sessions ${id}`, `identities ${identityId}`],
    ({ json }) => json.length + 800,
  )

  /** Nothing that could have ended it, through this gateway or another, can have been missed. */
  function valid(session: Session, at: number): boolean {
    if (at - session.usedAtMs > session.timeoutSeconds * 1000 || at >= session.endsAtMs) return false
    const source = followed()
    if (!source.trusted()) return false
    const wanted = writePositions.positions()[SCHEMA]
    return isAtLeast(source.positions()[SCHEMA], wanted) || isAtLeast(session.position, wanted)
  }

  /** What is still remembered outlived all that has been heard. */
  function outlived(session: Session): Session {
    const heard = followed().positions()[SCHEMA]
    if (isAtLeast(heard, session.position)) session.position = heard
    return session
  }

  function used(session: Session, at: number): Session {
    session.usedAtMs = at
    active.add(session)
    return session
  }

  async function mark(batch: readonly Session[]): Promise<void> {
    const atMs = batch.map(({ usedAtMs }) => usedAtMs)
    try {
      const request = { apiSessionIds: batch.map(({ id }) => id), atMs }
      const { unknownIds } = await identity.markActivity(request, context())
      batch.forEach((session, i) => {
        session.storedActivityMs = Math.max(session.storedActivityMs, atMs[i] ?? 0)
      })
      for (const id of unknownIds) cache.drop(`api-sessions ${id}`)
    } catch (err) {
      for (const session of batch) active.add(session)
      log.warn({ err, sessions: batch.length }, 'last activity could not be stored, trying again later')
    }
  }

  function remembered(key: string, at: number): Session | undefined {
    const session = cache.get(key)
    return session && valid(session, at) ? used(outlived(session), at) : undefined
  }

  return {
    gauged: cache.gauged,
    known: (token) => remembered(keyOf(token), now()),
    find(token) {
      const key = keyOf(token)
      const at = now()
      const session = remembered(key, at)
      if (session) return session
      if (!isUuid(token)) throw new Fault('UNAUTHORIZED')
      const load = async (): Promise<Session> =>
        sessionOf(await identity.getApiSession({ token }, context()), now())
      return cache.load(key, writePositions.positions(), load).then((loaded) => used(loaded, at))
    },
    remember(session) {
      const known = sessionOf(session, now())
      // its end may have been heard of before the news of its beginning: then its owner is asked
      if (isAtLeast(session.position, followed().positions()[SCHEMA])) cache.set(keyOf(session.token), known)
      return used(known, known.usedAtMs)
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

/** Tokens are credentials: what is remembered cannot be used as one. */
const keyOf = (token: string): string => createHash('sha256').update(token).digest('base64')

import { identity } from '@overlay/model'
import { type Change, CREDENTIALS, type Position } from '@overlay/rpc'
import { isDeleted, type Memory, openProjection, type Source } from '@overlay/store/change-log'
import type { Logger } from 'pino'
import {
  type ApiSession,
  decodeApiSessions,
  decodeRevocation,
  hasLimited,
  type Revocation,
  withoutExpired,
} from '../domain/api-session.js'

/** The API sessions that are fully authenticated, of all identities, in memory. */
export interface ApiSessions extends AsyncDisposable {
  /** By its newest token. */
  byId(id: string): ApiSession | undefined
  byToken(token: string): ApiSession | undefined
  /** By the ids of API sessions. Those whose tokens have all expired are dropped by `expire`. */
  revocations(): ReadonlyMap<string, Revocation>
  /** False until the first load, and during others. */
  isLoaded(): boolean
  position(): Position | undefined
  /** Drops fingerprints and revocations that count no longer. */
  expire(): void
  /** Resolves when all API sessions that exist at the time of the call are here. TIMEOUT when aborted. */
  catchUp(signal: AbortSignal): Promise<void>
}

/** Calls are synchronous, in the order of changes, one for each token. */
export interface ApiSessionListener {
  added(session: ApiSession): void
  /** Its fingerprints have changed. */
  updated(session: ApiSession): void
  removed(session: ApiSession): void
  /** Its access tokens that have not expired are revoked. */
  revoked?(id: string, revocation: Revocation): void
  /** They are no longer. */
  reinstated?(id: string): void
  /** The routers that policies grant it may be other ones. */
  identityChanged(id: string): void
  /** All changes up to the position have been reported. */
  applied(upto: Position): void
  /** Changes may have been missed: all API sessions have been read again. */
  reloaded(): void
}

/** Returns before the first load. */
export async function openApiSessions(
  source: Source,
  listener: ApiSessionListener,
  log: Logger,
): Promise<ApiSessions> {
  const ids = new Map<string, ApiSession>()
  const older = new Map<string, readonly ApiSession[]>() // of the same id, for the few that have several tokens
  const tokens = new Map<string, ApiSession>()
  const revocations = new Map<string, Revocation>()
  const limited = new Set<ApiSession>() // with fingerprints that expire
  let isLoaded = false

  function put(change: Change): void {
    if (change.kind === identity.kind) listener.identityChanged(change.id)
    else if (isDeleted(change)) remove(change.id)
    else if (change.kind === CREDENTIALS) {
      putSessions(change.id, decodeApiSessions(change.json))
      setRevocation(change.id, decodeRevocation(change.json))
    }
  }

  function setRevocation(id: string, revocation: Revocation | undefined): void {
    if (revocation) {
      revocations.set(id, revocation)
      listener.revoked?.(id, revocation)
    } else if (revocations.delete(id)) listener.reinstated?.(id)
  }

  /** Replaces those of the id. */
  function putSessions(id: string, decoded: readonly ApiSession[]): void {
    const stale = new Set(ofId(id))
    const sessions = decoded.map((session) => {
      const before = tokens.get(session.token)
      if (!before || !stale.delete(before)) return added(session)
      setFingerprints(before, session.fingerprints)
      return before
    })
    for (const session of stale) removed(session)
    index(id, sessions)
  }

  function ofId(id: string): readonly ApiSession[] {
    const newest = ids.get(id)
    return newest ? [...(older.get(id) ?? []), newest] : []
  }

  function index(id: string, sessions: readonly ApiSession[]): void {
    const newest = sessions.at(-1)
    if (newest) ids.set(id, newest)
    else ids.delete(id)
    if (sessions.length > 1) older.set(id, sessions.slice(0, -1))
    else older.delete(id)
  }

  function added(session: ApiSession): ApiSession {
    tokens.set(session.token, session)
    if (hasLimited(session)) limited.add(session)
    listener.added(session)
    return session
  }

  function setFingerprints(session: ApiSession, fingerprints: string): void {
    if (session.fingerprints === fingerprints) return
    session.fingerprints = fingerprints
    if (hasLimited(session)) limited.add(session)
    else limited.delete(session)
    listener.updated(session)
  }

  function remove(id: string): void {
    for (const session of ofId(id)) removed(session)
    index(id, [])
  }

  function removed(session: ApiSession): void {
    tokens.delete(session.token)
    limited.delete(session)
    listener.removed(session)
  }

  const memory: Memory = {
    name: 'api sessions',
    kinds: [CREDENTIALS, 'api-sessions', identity.kind],
    loadedKinds: [CREDENTIALS],
    apply(changes, upto) {
      for (const change of changes) put(change)
      listener.applied(upto)
    },
    load() {
      isLoaded = false
      const stale = new Set([...ids.keys(), ...revocations.keys()])
      return {
        add(rows) {
          for (const row of rows) {
            put(row)
            stale.delete(row.id)
          }
        },
        end(upto) {
          for (const id of stale) {
            remove(id)
            revocations.delete(id)
          }
          isLoaded = true
          listener.reloaded()
          listener.applied(upto)
        },
      }
    },
  }
  const projection = await openProjection(source, memory, { log, loaded: 'background' })
  return {
    byId: (id) => ids.get(id),
    byToken: (token) => tokens.get(token),
    revocations: () => revocations,
    isLoaded: () => isLoaded,
    position: projection.position,
    expire() {
      const now = Date.now()
      for (const session of limited) setFingerprints(session, withoutExpired(session, now))
      for (const [id, { untilMs }] of revocations) if (untilMs <= now) revocations.delete(id)
      const at = projection.position()
      if (at) listener.applied(at)
    },
    catchUp: projection.catchUp,
    [Symbol.asyncDispose]: () => projection[Symbol.asyncDispose](),
  }
}

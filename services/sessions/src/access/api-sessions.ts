import { type Bus, isDeleted, type Memory, openProjection, type Source } from '@overlay/platform/change-log'
import { type Change, CREDENTIALS, type Position } from '@overlay/rpc'
import type { Logger } from 'pino'
import { type ApiSession, decodeApiSession, hasLimited, withoutExpired } from '../domain/api-session.js'

/** The API sessions that are fully authenticated, of all identities, in memory. */
export interface ApiSessions extends AsyncDisposable {
  byId(id: string): ApiSession | undefined
  byToken(token: string): ApiSession | undefined
  all(): Iterable<ApiSession>
  count(): number
  /** False until the first load, and during others. */
  isLoaded(): boolean
  position(): Position | undefined
  /** Drops fingerprints that count no longer. */
  expire(): void
  /** Resolves when all API sessions that exist at the time of the call are here. TIMEOUT when aborted. */
  catchUp(signal: AbortSignal): Promise<void>
}

/** Calls are synchronous, in the order of changes. */
export interface ApiSessionListener {
  added(session: ApiSession): void
  /** Its fingerprints have changed. */
  updated(session: ApiSession): void
  removed(session: ApiSession): void
  /** All changes up to the position have been reported. */
  applied(upto: Position): void
  /** Changes may have been missed: all API sessions have been read again. */
  reloaded(): void
}

/** Returns before the first load. */
export async function openApiSessions(
  source: Source,
  listener: ApiSessionListener,
  { bus, log }: { readonly bus: Pick<Bus, 'subscribe'>; readonly log: Logger },
): Promise<ApiSessions> {
  const ids = new Map<string, ApiSession>()
  const tokens = new Map<string, ApiSession>()
  const limited = new Set<ApiSession>() // with fingerprints that expire
  let isLoaded = false

  function put(change: Change): void {
    if (isDeleted(change)) remove(change.id)
    else if (change.kind === CREDENTIALS) putSession(decodeApiSession(change.json))
  }

  function putSession(session: ApiSession): void {
    const before = ids.get(session.id)
    if (before?.token !== session.token) {
      remove(session.id)
      ids.set(session.id, session)
      tokens.set(session.token, session)
      if (hasLimited(session)) limited.add(session)
      listener.added(session)
    } else setFingerprints(before, session.fingerprints)
  }

  function setFingerprints(session: ApiSession, fingerprints: string): void {
    if (session.fingerprints === fingerprints) return
    session.fingerprints = fingerprints
    if (hasLimited(session)) limited.add(session)
    else limited.delete(session)
    listener.updated(session)
  }

  function remove(id: string): void {
    const session = ids.get(id)
    if (!session) return
    ids.delete(id)
    tokens.delete(session.token)
    limited.delete(session)
    listener.removed(session)
  }

  const memory: Memory = {
    kinds: [CREDENTIALS, 'api-sessions'],
    loadedKinds: [CREDENTIALS],
    apply(changes, upto) {
      for (const change of changes) put(change)
      listener.applied(upto)
    },
    load() {
      isLoaded = false
      const stale = new Set(ids.keys())
      return {
        add(rows) {
          for (const row of rows) {
            put(row)
            stale.delete(row.id)
          }
        },
        end(upto) {
          for (const id of stale) remove(id)
          isLoaded = true
          listener.reloaded()
          listener.applied(upto)
        },
      }
    },
  }
  const projection = await openProjection(source, memory, { bus, log, loaded: 'background' })
  return {
    byId: (id) => ids.get(id),
    byToken: (token) => tokens.get(token),
    all: () => ids.values(),
    count: () => ids.size,
    isLoaded: () => isLoaded,
    position: projection.position,
    expire() {
      const now = Date.now()
      for (const session of limited) setFingerprints(session, withoutExpired(session, now))
      const at = projection.position()
      if (at) listener.applied(at)
    },
    catchUp: projection.catchUp,
    [Symbol.asyncDispose]: () => projection[Symbol.asyncDispose](),
  }
}

import type { RouterApiSession, SyncState } from '@overlay/channel'
import {
  ApiSessionAdded,
  ApiSessionRemoved,
  ApiSessionUpdated,
  type Message,
  syncHeader,
} from '@overlay/channel'

/** The API sessions that the controllers have told the router. */
export interface ApiSessions {
  get(token: string): RouterApiSession | undefined
  tokens(): string[]
  readonly size: number
  /** Id of the controller that has sent an API session last. */
  sourceOf(token: string): string | undefined
  /** Waits for an API session that is not known yet. */
  waitFor(token: string, ms: number): Promise<RouterApiSession | undefined>
  added(message: Message, controllerId: string): void
  updated(message: Message, controllerId: string): void
  removed(message: Message): void
}

/** @param onRemoved gets the token of each API session that has ended */
export function openApiSessions(onRemoved: (token: string) => void): ApiSessions {
  const byToken = new Map<string, RouterApiSession>()
  const sources = new Map<string, string>()
  const waiting = new Map<string, Set<(session: RouterApiSession) => void>>()
  /** The full state that is arriving. */
  let sync = { id: '', chunks: new Map<number, RouterApiSession[]>(), last: -1 }

  function add(session: RouterApiSession, controllerId: string): void {
    byToken.set(session.token, session)
    sources.set(session.token, controllerId)
    for (const resolve of waiting.get(session.token) ?? []) resolve(session)
    waiting.delete(session.token)
  }

  function remove(token: string): void {
    sources.delete(token)
    if (byToken.delete(token)) onRemoved(token)
  }

  function replaceAll(sessions: readonly RouterApiSession[], controllerId: string): void {
    const tokens = new Set(sessions.map(({ token }) => token))
    const newest =
      sessions
        .map(({ id }) => id)
        .sort()
        .at(-1) ?? ''
    for (const { id, token } of [...byToken.values()]) {
      // wire: routers keep newer ones, which may have been added during the synchronization
      if (id <= newest && !tokens.has(token)) remove(token)
    }
    for (const session of sessions) add(session, controllerId)
  }

  function takeChunk(state: SyncState, sessions: RouterApiSession[], controllerId: string): void {
    if (state.id < sync.id) return
    if (state.id > sync.id) sync = { id: state.id, chunks: new Map(), last: -1 }
    sync.chunks.set(state.sequence, sessions)
    if (state.isLast) sync.last = state.sequence
    if (sync.chunks.size === sync.last + 1) replaceAll([...sync.chunks.values()].flat(), controllerId)
  }

  return {
    get: (token) => byToken.get(token),
    sourceOf: (token) => sources.get(token),
    tokens: () => [...byToken.keys()],
    get size() {
      return byToken.size
    },
    waitFor(token, ms) {
      const known = byToken.get(token)
      if (known) return Promise.resolve(known)
      return new Promise((resolve) => {
        const timer = setTimeout(() => {
          waiters.delete(found)
          resolve(undefined)
        }, ms)
        const found = (session: RouterApiSession): void => {
          clearTimeout(timer)
          resolve(session)
        }
        const waiters = waiting.get(token) ?? new Set()
        waiting.set(token, waiters.add(found))
      })
    },
    added({ body, headers }, controllerId) {
      const { isFullState, apiSessions } = ApiSessionAdded.decode(body)
      const state = headers.get(syncHeader.state)
      if (isFullState && state)
        takeChunk(JSON.parse(state.toString()) as SyncState, apiSessions, controllerId)
      else for (const session of apiSessions) add(session, controllerId)
    },
    updated({ body }, controllerId) {
      for (const session of ApiSessionUpdated.decode(body).apiSessions) add(session, controllerId)
    },
    removed({ body }) {
      // wire: only the tokens count. API sessions of access tokens have several
      for (const token of ApiSessionRemoved.decode(body).tokens) remove(token)
    },
  }
}

import { ApiSessionRemoved, ApiSessionUpdated, edgeType, SessionRemoved } from '@overlay/channel'
import { pagesOf } from '@overlay/platform/async'
import { newId } from '@overlay/platform/kind-store'
import type { Position } from '@overlay/rpc'
import type { RouterChannel } from '../control/router-channel.js'
import type { SyncReport } from '../control/router-status.js'
import type { ApiSession } from '../domain/api-session.js'
import type { EndedSession } from '../store/ended-session.js'
import type { ApiSessionListener, ApiSessions } from './api-sessions.js'
import { openBroadcast } from './broadcast.js'
import { encodeAdded, openChunks, routerApiSession, SESSIONS_PER_CHUNK } from './chunks.js'
import { openFullStates, syncHeaders } from './full-states.js'

/** Tells all routers of this replica which API sessions and sessions exist. */
export interface Push extends ApiSessionListener, Disposable {
  connect(router: RouterChannel): void
  disconnect(router: RouterChannel): void
  /** The router asks for a full state. */
  resync(router: RouterChannel): void
  sessionsEnded(ended: readonly EndedSession[]): void
  routers(): ReadonlySet<RouterChannel>
}

export interface PushDeps {
  readonly sessions: () => Pick<ApiSessions, 'catchUp' | 'isLoaded'>
  readonly sync: SyncReport
  /** All changes up to the position have been handed to the channels. */
  readonly pushed: (upto: Position) => void
}

/** Routers handle messages in parallel: one that removes a session may overtake the one that adds it. */
const REPEAT_REMOVAL_MS = 2000
const DROP_BODIES_MS = 60_000

export function openPush({ sessions, sync, pushed }: PushDeps): Push {
  const routers = new Set<RouterChannel>()
  const chunks = openChunks()
  const broadcast = openBroadcast(() => routers)
  const states = openFullStates({ chunks, sessions, sync })
  const added = new Set<ApiSession>()
  const updated = new Set<ApiSession>()
  let removed: ApiSession[] = []
  let recent = new Set<string>() // ids of sessions that routers have just been told of
  let repeating: NodeJS.Timeout | undefined
  let toRepeat: ApiSession[] = []

  const dropping = setInterval(() => {
    if (!states.any()) chunks.dropBodies()
  }, DROP_BODIES_MS)
  const forgetting = setInterval(() => {
    recent = new Set()
  }, 2 * REPEAT_REMOVAL_MS)

  function flush(): void {
    if (routers.size > 0) {
      sendRemoved(removed)
      for (const some of pagesOf([...added], SESSIONS_PER_CHUNK)) {
        const state = { id: newId('cuid'), isLast: true, sequence: 0 }
        broadcast.send({
          type: edgeType.apiSessionAdded,
          headers: syncHeaders(state),
          body: encodeAdded(false, some.map(routerApiSession)),
        })
      }
      for (const some of pagesOf([...updated], SESSIONS_PER_CHUNK))
        broadcast.send({
          type: edgeType.apiSessionUpdated,
          headers: syncHeaders(undefined),
          body: ApiSessionUpdated.encode({ apiSessions: some.map(routerApiSession) }).finish(),
        })
      for (const { id } of added) recent.add(id)
      repeatRemovals()
    }
    added.clear()
    updated.clear()
    removed = []
  }

  function sendRemoved(ended: readonly EndedSession[]): void {
    for (const some of pagesOf(ended, SESSIONS_PER_CHUNK)) {
      const body = ApiSessionRemoved.encode({ tokens: tokensOf(some), ids: idsOf(some) }).finish()
      broadcast.send({ type: edgeType.apiSessionRemoved, body })
    }
  }

  function repeatRemovals(): void {
    for (const session of removed) if (states.any() || recent.has(session.id)) toRepeat.push(session)
    if (toRepeat.length === 0) return
    repeating ??= setTimeout(() => {
      repeating = undefined
      sendRemoved(toRepeat)
      toRepeat = []
    }, REPEAT_REMOVAL_MS)
  }

  return {
    routers: () => routers,
    connect(router) {
      routers.add(router)
      if (sessions().isLoaded()) states.start(router)
    },
    disconnect(router) {
      routers.delete(router)
      states.stop(router)
    },
    resync: states.request,
    added(session) {
      chunks.add(session)
      states.changed(session)
      added.add(session)
    },
    updated(session) {
      chunks.changed(session)
      states.changed(session)
      if (!added.has(session)) updated.add(session)
    },
    removed(session) {
      chunks.remove(session)
      states.removed(session)
      updated.delete(session)
      if (!added.delete(session)) removed.push(session)
    },
    applied(upto) {
      flush()
      if (routers.size > 0) broadcast.afterwards(() => pushed(upto))
      else pushed(upto)
    },
    reloaded() {
      added.clear() // the full state has them
      flush()
      for (const router of routers) states.start(router)
    },
    sessionsEnded(ended) {
      for (const some of pagesOf(ended, SESSIONS_PER_CHUNK)) {
        const body = SessionRemoved.encode({ tokens: tokensOf(some), ids: idsOf(some) }).finish()
        broadcast.send({ type: edgeType.sessionRemoved, body })
      }
    },
    [Symbol.dispose]() {
      clearInterval(dropping)
      clearInterval(forgetting)
      clearTimeout(repeating)
      for (const router of routers) states.stop(router)
    },
  }
}

const tokensOf = (some: readonly EndedSession[]): string[] => some.map(({ token }) => token)
const idsOf = (some: readonly EndedSession[]): string[] => some.map(({ id }) => id)

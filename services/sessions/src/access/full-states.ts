import { randomUUID } from 'node:crypto'
import { edgeType, type RouterApiSession, SYNC_STRATEGY, type SyncState, syncHeader } from '@overlay/channel'
import { boundedQueue, yielder } from '@overlay/platform/async'
import { cuidAt, newId } from '@overlay/platform/kind-store'
import type { RouterChannel } from '../control/router-channel.js'
import type { SyncReport } from '../control/router-status.js'
import type { ApiSession } from '../domain/api-session.js'
import type { ApiSessions } from './api-sessions.js'
import { type Chunks, encodeAdded, routerApiSession, SESSIONS_PER_CHUNK } from './chunks.js'

/** Sends routers all API sessions: when they connect, when they ask, and after changes may have been missed. */
export interface FullStates {
  /** Begins a full state. One that is under way is abandoned. */
  start(router: RouterChannel): void
  /** The same, at most once in ten seconds for each router. */
  request(router: RouterChannel): void
  stop(router: RouterChannel): void
  /** A session has been added or changed: routers whose chunk is sent already get it with the last chunk. */
  changed(session: ApiSession): void
  removed(session: ApiSession): void
  any(): boolean
}

interface Sync {
  /** Chunks before it are sent. */
  cursor: number
  readonly late: Set<ApiSession>
  readonly startedAt: number
  isOver: boolean
  timer?: NodeJS.Timeout | undefined
}

export interface FullStateDeps {
  readonly chunks: Chunks
  readonly sessions: () => Pick<ApiSessions, 'catchUp'>
  readonly sync: SyncReport
}

/** Routers that receive a full state at a time: each may have 256 KiB queued. */
const AT_ONCE = 128
const REPEAT_MS = 10_000
const CATCH_UP_MS = 2000
/** Logins of this time may be on their way through another replica. */
const MARGIN_MS = 5000

export function openFullStates({ chunks, sessions, sync }: FullStateDeps): FullStates {
  const syncs = new Map<RouterChannel, Sync>()
  const queue = boundedQueue({ name: 'router-states', running: AT_ONCE, waiting: Number.POSITIVE_INFINITY })
  const running = (): Iterable<Sync> => [...syncs.values()].filter(({ isOver }) => !isOver)

  function start(router: RouterChannel): void {
    end(router)
    const one: Sync = { cursor: 0, late: new Set(), startedAt: performance.now(), isOver: false }
    syncs.set(router, one)
    sync.started(router)
    queue(() => send(router, one)).then(
      () => undefined,
      () => undefined, // the channel is closed
    )
  }
  function end(router: RouterChannel): void {
    const one = syncs.get(router)
    if (!one) return
    one.isOver = true
    clearTimeout(one.timer)
  }

  async function send(router: RouterChannel, one: Sync): Promise<void> {
    const { channel } = router
    const id = newId('cuid')
    const begun = Date.now()
    const yieldNow = yielder()
    let sequence = 0
    const sendChunk = (body: Uint8Array, isLast: boolean): void => {
      channel.send({ type: edgeType.apiSessionAdded, headers: syncHeaders({ id, isLast, sequence }), body })
      sequence++
    }
    while (one.cursor < chunks.count()) {
      if (one.isOver || channel.closed.aborted) return
      const body = chunks.body(one.cursor++)
      if (!body) continue
      sendChunk(body, false)
      await channel.drained()
      await yieldNow()
    }
    // the router drops what the state does not have: what other replicas have sent it must be here
    const isCurrent = await sessions()
      .catchUp(AbortSignal.timeout(CATCH_UP_MS))
      .then(
        () => true,
        () => false,
      )
    if (one.isOver || channel.closed.aborted) return
    const rest = [...one.late].map(routerApiSession)
    if (isCurrent) rest.push(boundary(begun - MARGIN_MS))
    one.isOver = true
    do sendChunk(encodeAdded(true, rest.splice(0, SESSIONS_PER_CHUNK)), rest.length === 0)
    while (rest.length > 0)
    sync.done(router)
  }

  return {
    start,
    request(router) {
      const before = syncs.get(router)
      if (!before || before.timer) return
      const waitMs = before.startedAt + REPEAT_MS - performance.now()
      if (waitMs <= 0) start(router)
      else before.timer = setTimeout(() => start(router), waitMs)
    },
    stop(router) {
      end(router)
      syncs.delete(router)
    },
    changed(session) {
      for (const one of running()) if (chunks.indexOf(session) < one.cursor) one.late.add(session)
    },
    removed(session) {
      for (const one of running()) one.late.delete(session)
    },
    any: () => [...syncs.values()].some(({ isOver }) => !isOver),
  }
}

/** wire: on 20200 and 20201. Routers compare ids as texts: the greater one is newer. */
export const syncHeaders = (state: SyncState | undefined) =>
  new Map([
    [syncHeader.strategy, Buffer.from(SYNC_STRATEGY)],
    [syncHeader.state, Buffer.from(state ? JSON.stringify(state) : '')],
  ])

/**
 * wire: routers drop a session that the state does not have only if the state has one with a greater id. This one, which
 * no client can use, lets them drop those that have ended since, too. It goes with the next state.
 */
const boundary = (atMs: number): RouterApiSession => ({
  token: randomUUID(),
  id: cuidAt(atMs * 1000, '0'.repeat(13)),
  certFingerprints: [],
})

import { randomUUID } from 'node:crypto'
import { edgeType, type RouterApiSession, SYNC_STRATEGY, type SyncState, syncHeader } from '@overlay/channel'
import { boundedQueue, yielder } from '@overlay/process/async'
import { cuidAt, newId } from '@overlay/store/kind-store'
import type { RouterChannel } from '../channel/router-channel.js'
import type { SyncReport } from '../channel/router-status.js'
import type { ApiSession } from '../domain/api-session.js'
import type { Audiences, Routers } from '../domain/audiences.js'
import {
  FULL_STATE_CATCH_UP_MS,
  FULL_STATE_MARGIN_MS,
  FULL_STATE_REPEAT_MS,
  FULL_STATES_AT_ONCE,
} from '../limits.js'
import type { ApiSessions } from './api-sessions.js'
import {
  type Encodings,
  encodeAdded,
  isPushedTo,
  joinEncodings,
  routerApiSession,
  SESSIONS_PER_MESSAGE,
} from './encode-api-sessions.js'
import type { openPlacing } from './granted-routers.js'

interface Sync {
  hasBegun: boolean
  readonly changed: Set<ApiSession>
  readonly startedAt: number
  isOver: boolean
  timer?: NodeJS.Timeout | undefined
}

export interface FullStateDeps {
  readonly audiences: Pick<Audiences, 'of' | 'ofRouter'>
  /** They are sent later, to all routers that may have them. */
  readonly added: ReadonlySet<ApiSession>
  /** Resolves when those of now are sent, or the signal is aborted. */
  readonly allSent: (signal: AbortSignal) => Promise<void>
  readonly placing: Pick<ReturnType<typeof openPlacing>, 'known'>
  readonly encodings: Encodings
  readonly sessions: () => Pick<ApiSessions, 'catchUp'>
  readonly sync: SyncReport
}

/** Sends routers all their API sessions: when they connect, when they ask, and after changes may have been missed. */
export function openFullStates({
  audiences,
  added,
  allSent,
  placing,
  encodings,
  sessions,
  sync,
}: FullStateDeps) {
  const syncs = new Map<RouterChannel, Sync>()
  const queue = boundedQueue({
    name: 'router-states',
    running: FULL_STATES_AT_ONCE,
    waiting: Number.POSITIVE_INFINITY,
  })

  /** Begins a full state. One that is under way is abandoned. */
  function start(router: RouterChannel): void {
    end(router)
    const startedAt = performance.now()
    const one: Sync = { hasBegun: false, changed: new Set(), startedAt, isOver: false }
    syncs.set(router, one)
    sync.started(router, 'api-sessions')
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
  const isRunning = ({ isOver }: Sync): boolean => !isOver

  /** What the router may have, in the order of memory. What is added meanwhile may come or not. */
  function* sessionsFor({ routerId, features }: RouterChannel): Iterable<ApiSession> {
    for (const { holders } of audiences.ofRouter(routerId))
      for (const holder of holders)
        for (const session of holder.sessions)
          if (isUsable(session) && isPushedTo(session, features) && !added.has(session)) yield session
  }
  function isFor({ routerId, features }: RouterChannel, session: ApiSession): boolean {
    const holder = audiences.of(session.identityId)
    const has = holder?.sessions.has(session) && holder.audience?.has(routerId)
    return has === true && isUsable(session) && isPushedTo(session, features)
  }

  async function send(router: RouterChannel, one: Sync): Promise<void> {
    const { channel, features } = router
    // the router drops what the state does not have, and its connections
    await placing.known(channel.closed)
    one.hasBegun = true
    const id = newId('cuid')
    const begun = Date.now()
    const yieldNow = yielder()
    let sequence = 0
    const sendBody = (body: Uint8Array, isLast: boolean): void => {
      channel.send({ type: edgeType.apiSessionAdded, headers: syncHeaders({ id, isLast, sequence }), body })
      sequence++
    }
    let some: Uint8Array[] = []
    for (const session of sessionsFor(router)) {
      if (one.isOver || channel.closed.aborted) return
      some.push(encodings.of(session, features))
      if (some.length < SESSIONS_PER_MESSAGE) continue
      sendBody(joinEncodings(some), false)
      some = []
      await channel.drained()
      await yieldNow()
    }
    if (some.length > 0) sendBody(joinEncodings(some), false)
    await channel.drained()
    // what other replicas have sent it must be here
    const isCurrent = await currentWithin(AbortSignal.timeout(FULL_STATE_CATCH_UP_MS))
    if (one.isOver || channel.closed.aborted) return
    const rest = [...one.changed]
      .filter((session) => isFor(router, session))
      .map((session) => routerApiSession(session, features))
    if (isCurrent) rest.push(boundary(begun - FULL_STATE_MARGIN_MS))
    one.isOver = true
    do sendBody(encodeAdded(true, rest.splice(0, SESSIONS_PER_MESSAGE)), rest.length === 0)
    while (rest.length > 0)
    sync.done(router, 'api-sessions')
  }
  const currentWithin = (limit: AbortSignal): Promise<boolean> =>
    sessions()
      .catchUp(limit)
      .then(() => allSent(limit))
      .then(
        () => !limit.aborted,
        () => false,
      )

  return {
    start,
    /** The same, at most once in ten seconds for each router. */
    request(router: RouterChannel): void {
      const before = syncs.get(router)
      if (!before || before.timer) return
      const waitMs = before.startedAt + FULL_STATE_REPEAT_MS - performance.now()
      if (waitMs <= 0) start(router)
      else before.timer = setTimeout(() => start(router), waitMs)
    },
    stop(router: RouterChannel): void {
      end(router)
      syncs.delete(router)
    },
    /** These routers get the session now, or changes of it: with the last message of a state again. */
    changed(session: ApiSession, to: Routers): void {
      for (const [{ routerId }, one] of syncs)
        if (isRunning(one) && one.hasBegun && to.has(routerId)) one.changed.add(session)
    },
    any(): boolean {
      for (const one of syncs.values()) if (isRunning(one)) return true
      return false
    },
  }
}

/** Has a certificate. Without one no router could admit its client. */
export const isUsable = ({ fingerprints }: ApiSession): boolean => fingerprints !== ''

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
  identityId: '',
})

import { setImmediate as nextTurn } from 'node:timers/promises'
import { ApiSessionRemoved, ApiSessionUpdated, edgeType, SessionRemoved } from '@overlay/channel'
import { openAlarm, openBackoff, pagesOf } from '@overlay/platform/async'
import { newId } from '@overlay/platform/kind-store'
import type { Position } from '@overlay/rpc'
import type { Logger } from 'pino'
import type { RouterChannel } from '../control/router-channel.js'
import type { SyncReport } from '../control/router-status.js'
import type { ApiSession } from '../domain/api-session.js'
import { type Audience, type Holder, openAudiences, type Routers } from '../domain/audiences.js'
import type { EndedSession } from '../store/ended-session.js'
import type { ApiSessionListener, ApiSessions } from './api-sessions.js'
import { openBroadcast } from './broadcast.js'
import { encodeAdded, openEncodings, routerApiSession, SESSIONS_PER_MESSAGE } from './encodings.js'
import { isUsable, openFullStates, syncHeaders } from './full-states.js'
import { openPlacing, type PlacingDeps } from './placing.js'

/**
 * Tells routers of this replica which API sessions exist that they could admit: those with a certificate, of identities
 * to which an edge router policy grants the router.
 */
export interface Push extends ApiSessionListener, AsyncDisposable {
  connect(router: RouterChannel): void
  disconnect(router: RouterChannel): void
  /** The router asks for a full state. */
  resync(router: RouterChannel): void
  sessionsEnded(ended: readonly EndedSession[]): void
  /** False: the router is not to have this API session, neither for clients nor as its own. */
  mayHave(routerId: string, session: ApiSession): boolean
  routers(): ReadonlySet<RouterChannel>
}

export interface PushDeps extends Omit<PlacingDeps, 'audiences'> {
  readonly sessions: () => Pick<ApiSessions, 'catchUp' | 'isLoaded'>
  readonly sync: SyncReport
  /** All changes up to the position have been handed to the channels. */
  readonly pushed: (upto: Position) => void
  readonly log: Logger
}

/** An API session that routers are to forget. */
interface Removal {
  readonly session: ApiSession
  readonly from: Routers
  /** The routers that keep it. Undefined: it has ended. */
  readonly kept: Audience | undefined
}

/** API sessions of identities that were granted the same routers before, and are granted the same ones now. */
interface Move {
  readonly before: Audience | undefined
  readonly after: Audience
  readonly sessions: ApiSession[]
}

/** Routers handle messages in parallel: one that removes a session may overtake the one that adds it. */
const REPEAT_REMOVAL_MS = 2000
const DROP_ENCODINGS_MS = 60_000
const PAUSES = { firstMs: 100, longestMs: 2000 }

export function openPush({ sessions, sync, pushed, log, ...deps }: PushDeps): Push {
  const routers = new Set<RouterChannel>()
  const audiences = openAudiences()
  const encodings = openEncodings()
  const broadcast = openBroadcast(() => routers)
  const placing = openPlacing(
    { ...deps, audiences },
    {
      due: wake,
      moved: noteMove,
      placed: sendMoves,
    },
  )
  const added = new Set<ApiSession>() // no router has got them
  const sent = openAlarm()
  const states = openFullStates({ audiences, added, allSent, placing, encodings, sessions, sync })
  const updated = new Set<ApiSession>()
  let removed: Removal[] = []
  let moves: Move[] = []
  let upto: Position | undefined // to be reported
  let recent = new Set<string>() // ids of sessions that routers have just been told of
  let repeating: NodeJS.Timeout | undefined
  let toRepeat: Removal[] = []
  const stop = new AbortController()
  const backoff = openBackoff(PAUSES)
  let running: Promise<void> | undefined

  const dropping = setInterval(() => {
    if (!states.any()) encodings.forgetAll()
  }, DROP_ENCODINGS_MS)
  const forgetting = setInterval(() => {
    recent = new Set()
  }, 2 * REPEAT_REMOVAL_MS)

  const isDue = (): boolean =>
    routers.size > 0 && !stop.signal.aborted && (added.size > 0 || upto !== undefined || placing.isDue())
  /** Policy is asked once at a time, for those that log in and others in turn. */
  async function run(): Promise<void> {
    while (isDue()) {
      await nextTurn() // the stream of policy has moved its positions
      try {
        await sendAdded()
        if (placing.isDue()) await placing.refresh()
      } catch (err) {
        if (backoff.isReset()) log.warn({ err }, 'policy does not answer which routers it grants identities')
        report()
        await backoff.pause(stop.signal)
      }
    }
  }
  function wake(): void {
    if (!isDue()) return
    running ??= run().finally(() => {
      running = undefined
      wake()
    })
  }
  function report(): void {
    const position = upto
    upto = undefined
    if (position) broadcast.afterwards(() => pushed(position))
  }

  async function sendAdded(): Promise<void> {
    const batch = [...added]
    const position = upto
    if (batch.length > 0) await placing.refreshAt(holdersOf(batch), position ? { identity: position } : {})
    const current = batch.filter((session) => added.delete(session) && isUsable(session))
    noteLate(current)
    sendTo(current, audienceOf, sendAdditions)
    sent.ring()
    if (position && position === upto) report()
    else if (position) broadcast.afterwards(() => pushed(position))
  }
  /** Resolves when the API sessions that are known now are sent, or the signal is aborted. */
  async function allSent(signal: AbortSignal): Promise<void> {
    const batch = [...added]
    while (batch.some((session) => added.has(session)) && !signal.aborted) await sent.sleep(signal)
  }
  function sendAdditions(some: readonly ApiSession[], to: Routers): void {
    const state = { id: newId('cuid'), isLast: true, sequence: 0 }
    const body = encodeAdded(false, some.map(routerApiSession))
    broadcast.send({ type: edgeType.apiSessionAdded, headers: syncHeaders(state), body }, to)
    for (const { id } of some) recent.add(id)
  }
  function sendUpdated(): void {
    const batch = [...updated]
    updated.clear()
    noteLate(batch)
    sendTo(batch, audienceOf, (some, to) => {
      const body = ApiSessionUpdated.encode({ apiSessions: some.map(routerApiSession) }).finish()
      broadcast.send({ type: edgeType.apiSessionUpdated, headers: syncHeaders(undefined), body }, to)
    })
  }
  function sendRemoved(removals: readonly Removal[]): void {
    sendTo(
      removals,
      ({ from }) => from,
      (some, to) => {
        const sessions = some.map(({ session }) => session)
        const body = ApiSessionRemoved.encode({ tokens: tokensOf(sessions), ids: idsOf(sessions) }).finish()
        broadcast.send({ type: edgeType.apiSessionRemoved, body }, to)
      },
    )
  }
  function remove(removals: readonly Removal[]): void {
    sendRemoved(removals)
    for (const removal of removals) if (states.any() || recent.has(removal.session.id)) toRepeat.push(removal)
    if (toRepeat.length === 0) return
    repeating ??= setTimeout(() => {
      repeating = undefined
      sendRemoved(toRepeat.filter(({ session, kept }) => audienceOf(session) === kept))
      toRepeat = []
    }, REPEAT_REMOVAL_MS)
  }

  function noteMove({ audience: after, sessions }: Holder, before: Audience | undefined): void {
    if (!after) return
    const known = moves.find((move) => move.before === before && move.after === after)
    if (known) known.sessions.push(...sessions)
    else moves.push({ before, after, sessions: [...sessions] })
  }
  /** Identities are granted other routers than before. */
  function sendMoves(): void {
    backoff.reset()
    const placed = moves
    moves = []
    for (const { before, after, sessions } of placed) {
      const known = sessions.filter((session) => !added.has(session))
      noteLate(known)
      if (before) {
        const lost = without(before, after)
        remove(known.map((session) => ({ session, from: lost, kept: after })))
      }
      const gained = before ? without(after, before) : after
      sendTo(known.filter(isUsable), () => gained, sendAdditions)
    }
  }
  /** Full states that are under way may have passed them. */
  function noteLate(some: readonly ApiSession[]): void {
    if (!states.any()) return
    for (const session of some) {
      const audience = audienceOf(session)
      if (audience) states.changed(session, audience)
    }
  }

  /** In messages of limited length, each to some routers, if any of them is connected. */
  function sendTo<T>(
    all: readonly T[],
    routersOf: (one: T) => Routers | undefined,
    send: (some: readonly T[], to: Routers) => void,
  ): void {
    const groups = new Map<Routers, T[]>()
    for (const one of all) {
      const to = routersOf(one)
      if (!to) continue
      const group = groups.get(to) ?? []
      group.push(one)
      groups.set(to, group)
    }
    for (const [to, group] of groups)
      if (isConnected(to)) for (const some of pagesOf(group, SESSIONS_PER_MESSAGE)) send(some, to)
  }
  const isConnected = (to: Routers): boolean => [...routers].some(({ routerId }) => to.has(routerId))

  const holderOf = (session: ApiSession): Holder | undefined => {
    const holder = audiences.of(session.identityId)
    return holder?.sessions.has(session) ? holder : undefined
  }
  const audienceOf = (session: ApiSession): Audience | undefined => holderOf(session)?.audience
  const holdersOf = (batch: readonly ApiSession[]): Holder[] => [
    ...new Set(batch.flatMap((session) => holderOf(session) ?? [])),
  ]

  function hold(session: ApiSession): void {
    placing.added(audiences.add(session))
    if (routers.size > 0) added.add(session)
  }
  return {
    routers: () => routers,
    mayHave: (routerId, session) => session.identityId === routerId || audiences.admits(routerId, session),
    connect(router) {
      routers.add(router)
      if (sessions().isLoaded()) states.start(router)
      wake()
    },
    disconnect(router) {
      routers.delete(router)
      states.stop(router)
      if (routers.size === 0) added.clear()
    },
    resync: states.request,
    added(session) {
      if (isUsable(session)) hold(session)
    },
    updated(session) {
      encodings.forget(session)
      if (!holderOf(session)) {
        if (isUsable(session)) hold(session)
      } else if (!added.has(session)) updated.add(session)
    },
    removed(session) {
      encodings.forget(session)
      const holder = audiences.remove(session)
      if (!holder) return
      if (holder.sessions.size === 0) placing.removed(holder)
      updated.delete(session)
      if (!added.delete(session) && holder.audience)
        removed.push({ session, from: holder.audience, kept: undefined })
    },
    identityChanged: placing.changed,
    applied(position) {
      remove(removed)
      removed = []
      sendUpdated()
      upto = position
      // nobody waits for policy while it does not answer
      if (routers.size === 0 || !backoff.isReset()) report()
      wake()
    },
    reloaded() {
      added.clear() // the full states have them
      placing.allChanged()
      for (const router of routers) states.start(router)
    },
    sessionsEnded(ended) {
      for (const some of pagesOf(ended, SESSIONS_PER_MESSAGE)) {
        const body = SessionRemoved.encode({ tokens: tokensOf(some), ids: idsOf(some) }).finish()
        broadcast.send({ type: edgeType.sessionRemoved, body }, everyone)
      }
    },
    async [Symbol.asyncDispose]() {
      stop.abort()
      clearInterval(dropping)
      clearInterval(forgetting)
      clearTimeout(repeating)
      for (const router of routers) states.stop(router)
      await running
    },
  }
}

const everyone: Routers = { has: () => true }
const without = (routers: Routers, others: Routers): Routers => ({
  has: (routerId) => routers.has(routerId) && !others.has(routerId),
})

const tokensOf = (some: readonly EndedSession[]): string[] => some.map(({ token }) => token)
const idsOf = (some: readonly EndedSession[]): string[] => some.map(({ id }) => id)

import { setImmediate as nextTurn } from 'node:timers/promises'
import { openAlarm, openBackoff } from '@overlay/process/async'
import type { Position } from '@overlay/rpc'
import type { Logger } from 'pino'
import type { RouterChannel } from '../channel/router-channel.js'
import type { SyncReport } from '../channel/router-status.js'
import type { ApiSession } from '../domain/api-session.js'
import { type Audience, type Holder, openAudiences, type Routers } from '../domain/audiences.js'
import { DROP_ENCODINGS_MS, PUSH_PAUSES, REPEAT_REMOVAL_MS } from '../limits.js'
import type { EndedSession } from '../store/ended-session.js'
import type { ApiSessionListener, ApiSessions } from './api-sessions.js'
import { openEncodings } from './encode-api-sessions.js'
import { isUsable, openFullStates } from './full-states.js'
import { openPlacing, type PlacingDeps } from './granted-routers.js'
import { type Addressed, openSessionMessages } from './session-messages.js'

/**
 * Sends the routers of this replica the API sessions that they could admit: those with a certificate, of identities
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
  /** False: the identity has no API session, or none that the router may have. */
  mayConnect(routerId: string, identityId: string): boolean
  routers(): ReadonlySet<RouterChannel>
}

export interface PushDeps extends Omit<PlacingDeps, 'audiences'> {
  readonly sessions: () => Pick<ApiSessions, 'catchUp' | 'isLoaded'>
  readonly sync: SyncReport
  /** All changes up to the position have been handed to the channels. */
  readonly pushed: (upto: Position) => void
  readonly log: Logger
}

/** An API session that routers must remove. */
interface Removal extends Addressed {
  /** The routers that keep it. Undefined: it has ended. */
  readonly kept: Audience | undefined
}

/** API sessions of identities that were granted the same routers before, and are granted the same ones now. */
interface Move {
  readonly before: Audience
  readonly after: Audience
  readonly sessions: ApiSession[]
}

export function openPush({ sessions, sync, pushed, log, ...deps }: PushDeps): Push {
  const routers = new Set<RouterChannel>()
  const audiences = openAudiences()
  const encodings = openEncodings()
  const messages = openSessionMessages(() => routers)
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
  let recent = new Set<string>() // ids of sessions that were just sent to routers
  let repeating: NodeJS.Timeout | undefined
  let toRepeat: Removal[] = []
  const stop = new AbortController()
  const backoff = openBackoff(PUSH_PAUSES)
  let running: Promise<void> | undefined

  const dropping = setInterval(() => {
    if (!states.any()) encodings.clear() // they take as much memory as the sessions
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
    backoff.reset()
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
    if (position) messages.afterwards(() => pushed(position))
  }

  async function sendAdded(): Promise<void> {
    const batch = [...added]
    const position = upto
    if (batch.length > 0) await placing.refreshAt(holdersOf(batch), position ? { identity: position } : {})
    const current = batch.filter((session) => added.delete(session) && isUsable(session))
    noteChanged(current)
    announce(current.map(addressed))
    sent.ring()
    if (position && position === upto) report()
    else if (position) messages.afterwards(() => pushed(position))
  }
  /** Resolves when the API sessions that are known now are sent, or the signal is aborted. */
  async function allSent(signal: AbortSignal): Promise<void> {
    const batch = [...added]
    while (batch.some((session) => added.has(session)) && !signal.aborted) await sent.sleep(signal)
  }
  function announce(some: readonly Addressed[]): void {
    messages.added(some)
    for (const { session } of some) recent.add(session.id)
  }
  function sendUpdated(): void {
    const batch = [...updated]
    updated.clear()
    noteChanged(batch)
    messages.updated(batch.map(addressed))
  }
  function remove(removals: readonly Removal[]): void {
    messages.removed(removals)
    const maySend = states.any()
    for (const removal of removals) if (maySend || recent.has(removal.session.id)) toRepeat.push(removal)
    if (toRepeat.length === 0) return
    repeating ??= setTimeout(() => {
      repeating = undefined
      messages.removed(toRepeat.filter(({ session, kept }) => audienceOf(session) === kept))
      toRepeat = []
    }, REPEAT_REMOVAL_MS)
  }

  /** API sessions of identities that were unknown are reported with those that are added, or in full states. */
  function noteMove({ audience: after, sessions }: Holder, before: Audience | undefined): void {
    if (!after || !before) return
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
      const [gained, lost] = [without(after, before), without(before, after)]
      const known = sessions.filter((session) => !added.has(session))
      noteChanged(known)
      remove(known.map((session) => ({ session, to: lost, kept: after })))
      announce(known.filter(isUsable).map((session) => ({ session, to: gained })))
    }
  }
  /** Full states that are under way may have passed them. */
  function noteChanged(some: readonly ApiSession[]): void {
    if (!states.any()) return
    for (const session of some) {
      const audience = audienceOf(session)
      if (audience) states.changed(session, audience)
    }
  }

  const holderOf = (session: ApiSession): Holder | undefined => {
    const holder = audiences.of(session.identityId)
    return holder?.sessions.has(session) ? holder : undefined
  }
  const audienceOf = (session: ApiSession): Audience | undefined => holderOf(session)?.audience
  const addressed = (session: ApiSession): Addressed => ({ session, to: audienceOf(session) })
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
    mayConnect: audiences.mayConnect,
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
      encodings.delete(session)
      if (!holderOf(session)) {
        if (isUsable(session)) hold(session)
      } else if (!added.has(session)) updated.add(session)
    },
    removed(session) {
      encodings.delete(session)
      const holder = audiences.remove(session)
      if (!holder) return
      if (holder.sessions.size === 0) placing.removed(holder)
      updated.delete(session)
      if (!added.delete(session) && holder.audience)
        removed.push({ session, to: holder.audience, kept: undefined })
    },
    identityChanged: placing.changed,
    applied(position) {
      remove(removed)
      removed = []
      sendUpdated()
      upto = position
      // no login waits for policy while it does not answer
      if (routers.size === 0 || !backoff.isReset()) report()
      wake()
    },
    reloaded() {
      added.clear() // the full states have them
      placing.allChanged()
      for (const router of routers) states.start(router)
    },
    sessionsEnded: messages.ended,
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

const without = (routers: Routers, others: Routers): Routers => ({
  has: (routerId) => routers.has(routerId) && !others.has(routerId),
})

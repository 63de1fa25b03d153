import {
  ApiSessionRemoved,
  ApiSessionUpdated,
  edgeType,
  type Outgoing,
  SessionRemoved,
} from '@overlay/channel'
import { pagesOf, yielder } from '@overlay/process/async'
import { newId } from '@overlay/store/kind-store'
import type { RouterChannel } from '../channel/router-channel.js'
import type { ApiSession } from '../domain/api-session.js'
import type { Routers } from '../domain/audiences.js'
import type { EndedSession } from '../store/ended-session.js'
import {
  encodeAdded,
  isPushedTo,
  type PushFeatures,
  routerApiSession,
  SESSIONS_PER_MESSAGE,
} from './encode-api-sessions.js'
import { syncHeaders } from './full-states.js'

/** An API session, and the routers that a message about it is for. */
export interface Addressed {
  readonly session: ApiSession
  /** Undefined: none. */
  readonly to: Routers | undefined
}

/**
 * Messages about some sessions to the connected routers among those that they concern, in order. `routers` is read for
 * each message.
 */
export function openSessionMessages(routers: () => ReadonlySet<RouterChannel>) {
  const broadcast = openBroadcast(routers)
  function isConnected(to: Addressees): boolean {
    for (const router of routers()) if (to(router)) return true
    return false
  }

  /** In messages of limited length, one after the other for the same routers. */
  function send(
    all: readonly Addressed[],
    sendPage: (some: readonly ApiSession[], to: Addressees, features: PushFeatures) => void,
  ): void {
    const groups = new Map<Routers, ApiSession[]>()
    for (const { session, to } of all) {
      if (!to) continue
      const group = groups.get(to) ?? []
      group.push(session)
      groups.set(to, group)
    }
    for (const [routersOf, group] of groups)
      for (const features of alike) {
        const to: Addressees = (router) =>
          router.features.verifiesTokens === features.verifiesTokens && routersOf.has(router.routerId)
        if (!isConnected(to)) continue
        const pushed = group.filter((session) => isPushedTo(session, features))
        for (const some of pagesOf(pushed, SESSIONS_PER_MESSAGE)) sendPage(some, to, features)
      }
  }
  return {
    added(all: readonly Addressed[]): void {
      send(all, (some, to, features) => {
        const headers = syncHeaders({ id: newId('cuid'), isLast: true, sequence: 0 })
        const body = encodeAdded(
          false,
          some.map((session) => routerApiSession(session, features)),
        )
        broadcast.send({ type: edgeType.apiSessionAdded, headers, body }, to)
      })
    },
    updated(all: readonly Addressed[]): void {
      send(all, (some, to, features) => {
        const apiSessions = some.map((session) => routerApiSession(session, features))
        const body = ApiSessionUpdated.encode({ apiSessions }).finish()
        broadcast.send({ type: edgeType.apiSessionUpdated, headers: syncHeaders(undefined), body }, to)
      })
    },
    removed(all: readonly Addressed[]): void {
      send(all, (some, to) => {
        const body = ApiSessionRemoved.encode({ tokens: tokensOf(some), ids: idsOf(some) }).finish()
        broadcast.send({ type: edgeType.apiSessionRemoved, body }, to)
      })
    },
    /** Sessions for services: all routers learn which have ended. */
    ended(all: readonly EndedSession[]): void {
      for (const some of pagesOf(all, SESSIONS_PER_MESSAGE)) {
        const body = SessionRemoved.encode({ tokens: tokensOf(some), ids: idsOf(some) }).finish()
        broadcast.send({ type: edgeType.sessionRemoved, body }, () => true)
      }
    },
    afterwards: broadcast.afterwards,
  }
}

const tokensOf = (some: readonly EndedSession[]): string[] => some.map(({ token }) => token)
const idsOf = (some: readonly EndedSession[]): string[] => some.map(({ id }) => id)

/** Routers that get them in the same form. */
const alike: readonly PushFeatures[] = [{ verifiesTokens: false }, { verifiesTokens: true }]

type Addressees = (router: RouterChannel) => boolean

interface Sent {
  readonly message: Outgoing
  readonly to: Addressees
}

/** Sends messages to many routers, in order, each body encoded once. With many of them other work has its turn in between. */
function openBroadcast(routers: () => Iterable<RouterChannel>) {
  const queue: (Sent | (() => void))[] = []
  let isRunning = false

  async function run(): Promise<void> {
    const yieldNow = yielder()
    for (let next = queue.shift(); next; next = queue.shift()) {
      if (typeof next === 'function') {
        next()
        continue
      }
      const { message, to } = next
      for (const router of [...routers()]) {
        if (!to(router)) continue
        router.channel.send(message)
        await yieldNow()
      }
    }
  }
  function start(): void {
    if (isRunning) return
    isRunning = true
    void run().finally(() => {
      isRunning = false
      if (queue.length > 0) start()
    })
  }
  return {
    /** To those of the routers that are connected. */
    send(message: Outgoing, to: Addressees): void {
      queue.push({ message, to })
      start()
    },
    /** Called when all messages before it have been handed to the channels. */
    afterwards(done: () => void): void {
      queue.push(done)
      start()
    },
  }
}

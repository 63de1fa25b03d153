import { randomUUID } from 'node:crypto'
import { setImmediate as nextTurn } from 'node:timers/promises'
import {
  ApiSessionHeartbeat,
  type Channel,
  ChannelClosed,
  edgeType,
  encodeFrame,
  frameDecoder,
  MESSAGE_LIMITS,
  type Message,
  type Outgoing,
} from '@overlay/channel'
import { openAlarm } from '@overlay/process/async'
import { type Change, Fault, type Position, type Positions } from '@overlay/rpc'
import type { Bus, ChangeLog, FabricEvent, Source } from '@overlay/store/change-log'
import { newId } from '@overlay/store/kind-store'
import { type AccessConcern, type AccessDeps, accessConcern } from '../src/access/access-concern.js'
import type { RouterChannel } from '../src/channel/router-channel.js'
import { NO_FEATURES, type RouterFeatures } from '../src/domain/router-features.js'
import type { GrantListener } from '../src/grants/watch-grants.js'
import type { SessionTokens } from '../src/tokens/session-tokens.js'
import { testTokens } from './session-tokens.js'
import { log } from './store.js'

interface AccessToken {
  readonly id: string
  readonly token: string
}

export interface TestApiSession {
  readonly id: string
  readonly token: string | null
  readonly accessTokens: readonly AccessToken[]
  readonly identityId: string
  readonly fingerprints: readonly string[]
  readonly expiring: readonly { readonly fingerprint: string; readonly validToMs: number }[]
  readonly revokedUntilMs?: number
}

/** Identity: the credentials of its API sessions, and their changes. */
export function fakeIdentity() {
  const rows = new Map<string, TestApiSession>()
  const moved = openAlarm()
  let timeline = randomUUID()
  let changes: Change[] = []
  let isAway = false
  const head = (): Position => ({ timeline, number: changes.length })
  const append = (kind: string, id: string, row?: TestApiSession): void => {
    const json = Buffer.from(row ? JSON.stringify(row) : '')
    changes.push({ kind, id, json, atMs: Date.now(), number: changes.length + 1 })
    moved.ring()
  }
  const after = (position: Position) => {
    if (isAway) throw new Fault('UNAVAILABLE')
    if (position.timeline !== timeline) throw new Fault('OUT_OF_RANGE')
    const missing = changes.slice(position.number)
    return { upto: head(), after: position, changes: missing, more: false, ageMs: 0 }
  }
  const source: Source = {
    schema: 'identity',
    async *load() {
      if (isAway) throw new Fault('UNAVAILABLE')
      const upto = head()
      const loaded = [...rows.values()].map((row) => ({
        kind: 'api-session-credentials',
        id: row.id,
        json: Buffer.from(JSON.stringify(row)),
        atMs: 0,
        number: 0,
      }))
      yield { upto, after: undefined, changes: loaded, more: false, ageMs: 0 }
    },
    async *watch(from, signal) {
      for (let at = from; !signal.aborted; ) {
        const message = after(at)
        at = message.upto
        yield message
        if (at.number === changes.length && at.timeline === timeline) await moved.sleep(signal, 500)
      }
    },
    pull: async (from) => after(from),
    row: async () => Buffer.alloc(0),
  }
  const put = (row: TestApiSession): TestApiSession => {
    rows.set(row.id, row)
    append('api-session-credentials', row.id, row)
    return row
  }
  return {
    source,
    login: (identityId: string, ...fingerprints: string[]) => {
      const token = randomUUID()
      const row = { id: newId('cuid'), token, accessTokens: [], identityId, fingerprints, expiring: [] }
      put(row)
      return row
    },
    /** An API session whose client presents access tokens. */
    bearer: (identityId: string, ...accessTokens: AccessToken[]) =>
      put({ id: newId('cuid'), token: null, accessTokens, identityId, fingerprints: ['one'], expiring: [] }),
    put,
    /** Its access tokens count no longer, or it has ended before they expired. */
    revoke: (row: TestApiSession, revokedUntilMs: number) =>
      put({ ...row, accessTokens: [], fingerprints: [], revokedUntilMs }),
    end(id: string): void {
      rows.delete(id)
      append('api-sessions', id)
    },
    /** A restored backup: these sessions, without changes that lead to them. */
    restore(...sessions: readonly TestApiSession[]): void {
      timeline = randomUUID()
      changes = []
      rows.clear()
      for (const row of sessions) rows.set(row.id, row)
      moved.ring()
    },
    setAway(now: boolean): void {
      isAway = now
      moved.ring()
    },
  }
}

/** By default policy grants these routers to every identity: those of `testRouter`. */
const everyRouter = Array.from({ length: 200 }, (_, n) => `router-${n}`)
let routerCount = 0

/** Policy: the routers that it grants identities, and its stream of changes. */
export function fakeGrants(first: (identityId: string) => readonly string[] = () => everyRouter) {
  let routersOf = first
  const listeners: GrantListener[] = []
  let number = 1
  let isAway = false
  let isOld = false
  let asked = 0
  let refused = 0
  const head = (): Positions => ({ policy: { timeline: 'policy', number } })
  let streamed = head()
  const announce = (ids: readonly string[] | 'all'): void => {
    for (const listener of listeners) listener(ids)
    streamed = head()
  }
  return {
    /** How many identities it has been asked for, and how often in vain. */
    asked: () => asked,
    refused: () => refused,
    /** A change that the stream names. */
    grant(now: (identityId: string) => readonly string[], ids: readonly string[] | 'all' = 'all'): void {
      routersOf = now
      number++
      announce(ids)
    },
    /** A change that the stream has not named yet. */
    grantUnseen(now: (identityId: string) => readonly string[]): void {
      routersOf = now
      number++
    },
    announce,
    setAway(now: boolean): void {
      isAway = now
    },
    /** Policy of an earlier release. */
    setOld(now: boolean): void {
      isOld = now
      announce('all')
    },
    grantWatch: {
      positions: () => streamed,
      lacksRouters: () => isOld,
      onChange: (listener: GrantListener) => void listeners.push(listener),
    },
    policyHead: async () => head(),
    async getIdentityRouters({ identityIds }: { readonly identityIds: readonly string[] }) {
      if (isAway) {
        refused++
        throw new Fault('UNAVAILABLE')
      }
      await nextTurn()
      asked += identityIds.length
      const sets = identityIds.map((id) => ({ ids: [...routersOf(id)] }))
      return { sets, setOf: sets.map((_, at) => at) }
    },
  }
}

export interface TestRouter extends RouterChannel {
  readonly received: readonly Message[]
  /** The messages of a type, in order. */
  ofType(type: number): readonly Message[]
  /** Resolves when the condition holds, which is tested after each message. */
  until(condition: () => boolean): Promise<void>
  /** The router takes nothing until it is called. */
  stall(): () => void
}

const frameOf = ({ type, headers = new Map(), body = Buffer.alloc(0) }: Outgoing): Buffer =>
  encodeFrame(type, 0, headers, body)

export function testRouter(
  routerId = `router-${routerCount++ % everyRouter.length}`,
  features: RouterFeatures = NO_FEATURES,
): TestRouter {
  const received: Message[] = []
  const closing = new AbortController()
  const arrived = openAlarm()
  const never = new AbortController().signal
  let taking: Promise<void> = Promise.resolve()
  const channel: Partial<Channel> = {
    send(message: Outgoing) {
      const decoder = frameDecoder()
      decoder.push(frameOf(message))
      const decoded = decoder.next(MESSAGE_LIMITS)
      if (decoded) received.push(decoded)
      arrived.ring()
    },
    drained: () => taking,
    queuedBytes: () => 0,
    close: (reason) => closing.abort(new ChannelClosed(reason)),
    closed: closing.signal,
  }
  return {
    routerId,
    received,
    channel: channel as Channel,
    fingerprint: '',
    connectedAt: new Date(),
    features,
    isReconnection: true,
    linkListeners: Buffer.alloc(0),
    ofType: (type) => received.filter((message) => message.type === type),
    async until(condition) {
      while (!condition()) await arrived.sleep(never)
    },
    stall() {
      let release = (): void => undefined
      taking = new Promise((resolve) => {
        release = resolve
      })
      return release
    },
  }
}

export interface TestAccess extends AsyncDisposable {
  readonly concern: AccessConcern
  readonly tokens: SessionTokens
  readonly synced: Set<string>
  /** API session ids that identity has been told of. */
  readonly marked: string[]
  /** Ids of access tokens that identity has been told of. */
  readonly markedTokens: string[]
  /** Ids of identities that identity has been told are connected. */
  readonly connected: string[]
  readonly events: readonly FabricEvent[]
  connect(router: TestRouter): Promise<void>
  receive(router: TestRouter, message: Outgoing): Promise<void>
}

export interface TestAccessOptions {
  readonly bus: Bus
  readonly identity: Pick<ReturnType<typeof fakeIdentity>, 'source'>
  /** The routers that identity and service have in common. */
  readonly commonRouters?: (identityId: string, serviceId: string) => readonly string[]
  /** Called with each report to identity. */
  readonly onReport?: (() => Promise<void>) | undefined
  readonly grants?: ReturnType<typeof fakeGrants>
  readonly createSession?: AccessDeps['createSession']
  readonly presence?: AccessDeps['presence']
}

/** The concern of one replica, with fakes of the other services. */
export async function startAccess(changeLog: ChangeLog, options: TestAccessOptions): Promise<TestAccess> {
  const synced = new Set<string>()
  const marked: string[] = []
  const markedTokens: string[] = []
  const connected: string[] = []
  const events: FabricEvent[] = []
  const { bus, identity, commonRouters = () => [], onReport, grants = fakeGrants() } = options
  const { tokens, keys } = await testTokens()
  const concern = await accessConcern({
    bus,
    tokens,
    changeLog,
    log,
    directory: { get: () => ({ isEdge: true }) } as unknown as AccessDeps['directory'],
    presence: options.presence ?? {
      of: () => [],
      hasFormerReplicas: () => false,
      onChange: () => ({ [Symbol.dispose]: () => undefined }),
    },
    sync: {
      started: ({ routerId }) => void synced.delete(routerId),
      done: ({ routerId }) => void synced.add(routerId),
    },
    identity: {
      source: identity.source,
      calls: {
        async markActivity({ apiSessionIds, accessTokenIds }) {
          marked.push(...apiSessionIds)
          markedTokens.push(...accessTokenIds)
          return { unknownIds: [] }
        },
        async reportConnections({ identityIds }) {
          await onReport?.()
          connected.push(...identityIds)
          return {}
        },
      },
    },
    grantWatch: grants.grantWatch,
    policyHead: grants.policyHead,
    policy: {
      getIdentityRouters: grants.getIdentityRouters,
      getCommonRouters: async ({ pairs }) => ({
        routers: pairs.map(({ identityId, serviceId }) => ({
          ids: [...commonRouters(identityId, serviceId)],
        })),
      }),
    },
    heads: async () => ({}),
    gatherMs: 20,
    createSession: options.createSession ?? (() => Promise.reject(new Fault('NOT_FOUND'))),
    controllerId: 'c1',
    events: { emit: (event) => void events.push(event) },
  })
  const message = (outgoing: Outgoing): Message => {
    const decoder = frameDecoder()
    decoder.push(frameOf(outgoing))
    const decoded = decoder.next(MESSAGE_LIMITS)
    if (!decoded) throw new Error('no message')
    return decoded
  }
  return {
    concern,
    tokens,
    synced,
    marked,
    markedTokens,
    connected,
    events,
    async connect(router) {
      await concern.connected?.(router)
    },
    async receive(router, outgoing) {
      const handler = concern.handlers.find(({ type }) => type === outgoing.type)
      await handler?.prepare(message(outgoing), router)()
    },
    async [Symbol.asyncDispose]() {
      await concern[Symbol.asyncDispose]()
      await keys[Symbol.asyncDispose]()
    },
  }
}

/** The heartbeat of a router with connections of clients under these tokens. */
export const heartbeat = (...tokens: string[]) => ({
  type: edgeType.apiSessionHeartbeat,
  body: ApiSessionHeartbeat.encode({ tokens }).finish(),
})

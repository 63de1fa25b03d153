import { type Channel, ChannelClosed, edgeErrorCode, type Message, type Outgoing } from '@overlay/channel'
import { announcing, type FabricEvent } from '@overlay/store/change-log'
import sql from 'sql-template-tag'
import type { Concern } from '../src/channel/handlers.js'
import type { RouterChannel } from '../src/channel/router-channel.js'
import { AccessRefused, type CheckAccess } from '../src/domain/router-access.js'
import { NO_FEATURES, type RouterFeatures } from '../src/domain/router-features.js'
import { terminatorsConcern } from '../src/terminators/terminators-concern.js'
import { log, startStore } from './store.js'

interface Encoder<T> {
  encode(message: T): { finish(): Uint8Array }
}

/** A router whose messages the concern handles without a connection. */
export interface FakeRouter {
  readonly channel: RouterChannel
  /** Messages that were sent to it, besides answers. */
  readonly sent: Outgoing[]
  /** Sends a message, and returns the answers to it. */
  ask<T>(type: number, codec: Encoder<T>, message: T): Promise<readonly Outgoing[]>
  /** The same with a body that is no protobuf, or headers. */
  askRaw(type: number, body: Buffer, headers?: Message['headers']): Promise<readonly Outgoing[]>
  connect(): Promise<void>
}

export function fakeRouter(
  concern: () => Concern,
  routerId: string,
  features: RouterFeatures = NO_FEATURES,
): FakeRouter {
  const sent: Outgoing[] = []
  const answers = new Map<number, Outgoing[]>()
  let sequence = 0
  const closing = new AbortController()
  const channel: Channel = {
    send: (message) => void ('type' in message && sent.push(message)),
    sendLarge: () => Promise.reject(new Error('not used here')),
    request: () => Promise.reject(new Error('not used here')),
    requestLarge: () => Promise.reject(new Error('not used here')),
    reply: (to, answer) => void answers.get(to.sequence)?.push(answer),
    close: (reason) => closing.abort(new ChannelClosed(reason)),
    closed: closing.signal,
    queuedBytes: () => 0,
    drained: async () => undefined,
    latencyMs: () => undefined,
  }
  const router: RouterChannel = {
    ...{ routerId, channel, fingerprint: '', connectedAt: new Date(), features },
    ...{ isReconnection: true, linkListeners: Buffer.alloc(0) },
  }
  async function askRaw(type: number, body: Buffer, headers: Message['headers'] = new Map()) {
    const message: Message = { type, sequence: ++sequence, headers, body }
    const own: Outgoing[] = []
    answers.set(message.sequence, own)
    const handler = concern().handlers.find((one) => one.type === type)
    await handler?.prepare(message, router)()
    return own
  }
  return {
    channel: router,
    sent,
    ask: (type, codec, message) => askRaw(type, Buffer.from(codec.encode(message).finish())),
    askRaw,
    connect: async () => concern().connected?.(router),
  }
}

/** Of 2.x. */
export const CURRENT_FEATURES = {
  hasDataModel: true,
  verifiesTokens: true,
  needsSignedSessions: true,
  isGrouped: true,
  comparesModel: true,
}

/** Sessions that exist, by token: who hosts which service. */
const grants: Readonly<Record<string, { readonly identityId: string; readonly serviceId: string }>> = {
  'of-alice': { identityId: 'alice', serviceId: 'wiki' },
  'of-bob': { identityId: 'bob', serviceId: 'wiki' },
}

/** Terminators on a database of their own, with two routers and the sessions of two hosts. */
export async function startTerminators({ strategy = '' }: { readonly strategy?: string } = {}) {
  const store = await startStore()
  const changeLog = announcing(store.changeLog, (changes) => concern.written(changes))
  const { db } = changeLog
  await db.query(sql`insert into router (id, name, is_edge) values ('r1', 'r1', true), ('r2', 'r2', true)`)
  for (const [token, { identityId, serviceId }] of Object.entries(grants))
    await db.query(sql`
      insert into session (id, token, type, api_session_id, service_id, identity_id)
      values (${token}, ${token}, 'Bind', ${`as-${token}`}, ${serviceId}, ${identityId})`)
  const checkAccess: CheckAccess = async ({ sessionToken, type }) => {
    const grant = grants[sessionToken]
    if (!grant || type !== 'Bind') throw new AccessRefused(edgeErrorCode.invalidSession, 'invalid session')
    return { ...grant, sessionId: sessionToken, apiSessionId: `as-${sessionToken}` }
  }
  const events: FabricEvent[] = []
  const ended: string[] = []
  const deleted: string[] = []
  const sentElsewhere: { readonly routerId: string; readonly message: Outgoing }[] = []
  const open = (replicaId: string) =>
    terminatorsConcern({
      changeLog,
      replicaId,
      presence: { isOnline: (id) => id === 'r1', of: () => [], replicas: () => new Set(['c1', 'c2']) },
      messages: { send: (routerId, message) => void sentElsewhere.push({ routerId, message }) },
      events: { emit: (event) => void events.push(event) },
      services: {
        find: async (id) =>
          id === 'gone'
            ? undefined
            : {
                ...{ id, name: id, terminatorStrategy: strategy },
                ...{ encryptionRequired: false, maxIdleTimeMillis: 0 },
              },
      },
      checkAccess,
      endCircuits: async (ids) => void ended.push(...ids),
      deleteRouter: async (id) => void deleted.push(id),
      log,
    })
  const concern = open('c1')
  return {
    db,
    changeLog,
    concern,
    /** Another replica on the same database. */
    open,
    events,
    /** Terminators whose circuits were ended. */
    ended,
    deleted,
    sentElsewhere,
    r1: fakeRouter(() => concern, 'r1'),
    r2: fakeRouter(() => concern, 'r2'),
    /** r1, of 2.x. */
    current: fakeRouter(() => concern, 'r1', CURRENT_FEATURES),
    async rows() {
      const { rows } = await db.query(sql`
        select id, service_id, router_id, binding, address, instance_id, identity_secret, host_id, cost, precedence,
               saved_precedence, session_id, peer_data, is_system, is_by_router from terminator order by id`)
      return rows
    },
    async audit() {
      const { rows } = await db.query<{ change: string }>(sql`
        select identity_id || ': ' || entity_id || case when before is null then ' created'
                                                        when after is null then ' deleted' else ' updated' end as change
          from audit where kind = 'terminators' order by at, id`)
      return rows.map(({ change }) => change)
    },
    async [Symbol.asyncDispose]() {
      await concern[Symbol.asyncDispose]()
      await store[Symbol.asyncDispose]()
    },
  }
}

import type { Message, Outgoing } from '@overlay/channel'
import { edgeErrorCode } from '@overlay/channel'
import type { ChangeLog, FabricEvent } from '@overlay/store/change-log'
import type { Database } from '@overlay/store/postgres'
import sql from 'sql-template-tag'
import type { RouterChannel } from '../src/channel/router-channel.js'
import { type CircuitsConcern, circuitsConcern } from '../src/circuits/circuits-concern.js'
import type { Path } from '../src/domain/link-graph.js'
import { type AccessClaim, AccessRefused } from '../src/domain/router-access.js'
import type { RouterListener } from '../src/routers/router-directory.js'
import type { ServiceInfo } from '../src/terminators/service-directory.js'
import type { DialTarget, TargetRequest } from '../src/terminators/terminator-pool.js'
import { type FakeRouter, type FakeRouters, fakeRouters } from './circuit-routers.js'
import { log, startStore } from './store.js'

export interface Network extends AsyncDisposable {
  readonly db: Database
  readonly changeLog: ChangeLog
  readonly routers: FakeRouters
  /** Links as `from-to`, which are their ids, in the order of their cost. */
  readonly links: string[]
  readonly services: Map<string, ServiceInfo>
  readonly targets: DialTarget[]
  /** Calls of the pool that report dials. */
  readonly dials: string[]
  readonly events: FabricEvent[]
  readonly liveReplicas: Set<string>
  /** A replica with the channels of these routers. */
  replica(id: string, channels?: readonly RouterChannel[]): CircuitsConcern
  /** An administrator deletes a router. */
  deleteRouter(id: string): void
  /** The ids of all circuits. */
  circuits(): Promise<readonly string[]>
}

export const target = (id: string, routerId: string, members: Partial<DialTarget> = {}): DialTarget => ({
  id,
  routerId,
  serviceId: 'wiki',
  binding: 'edge',
  address: id,
  instanceId: '',
  hostId: 'bob',
  peerData: new Map(),
  ...members,
})

/** Routers r1 to r4 in a line, a session `s1` of alice, and a terminator of service wiki at r1. */
export async function startNetwork(): Promise<Network> {
  const store = await startStore()
  const { changeLog } = store
  const { db } = changeLog
  await addSession(db, 's1')
  const routers = fakeRouters('r1', 'r2', 'r3', 'r4')
  const links = ['r1-r2', 'r2-r3', 'r3-r4']
  const wiki = { id: 'wiki', name: 'wiki', terminatorStrategy: '', encryptionRequired: false }
  const services = new Map<string, ServiceInfo>([['wiki', { ...wiki, maxIdleTimeMillis: 0 }]])
  const targets = [target('t1', 'r1')]
  const dials: string[] = []
  const events: FabricEvent[] = []
  const liveReplicas = new Set<string>()
  const opened: CircuitsConcern[] = []
  const directory = new Set<RouterListener>()
  const pathOf = (from: string, to: string): Path | undefined => shortestPath(routers, links, from, to)

  const pool = {
    async select({ pathCost, excluded, serviceId, instanceId }: TargetRequest) {
      const found = targets.find(
        (one) =>
          one.serviceId === serviceId &&
          one.instanceId === instanceId &&
          !excluded.has(one.id) &&
          pathCost(one.routerId) !== undefined,
      )
      if (!found) throw new AccessRefused(edgeErrorCode.invalidTerminator, 'no terminators')
      return { target: found, stickinessToken: 'sticky' }
    },
    dialSucceeded: ({ id }: DialTarget) => void dials.push(`${id} succeeded`),
    dialFailed: ({ id }: DialTarget) => void dials.push(`${id} failed`),
    circuitOpened: (id: string) => void dials.push(`${id} opened`),
    circuitClosed: (id: string) => void dials.push(`${id} closed`),
    async deleteUnknown({ id }: DialTarget) {
      targets.splice(
        targets.findIndex((one) => one.id === id),
        1,
      )
    },
    markFailed: async ({ id }: DialTarget) => void dials.push(`${id} marked`),
  }

  async function checkAccess({ sessionToken, type }: AccessClaim) {
    const [, sessionId = ''] = /^token of (\w+)$/.exec(sessionToken) ?? []
    if (!sessionId || type !== 'Dial')
      throw new AccessRefused(edgeErrorCode.invalidSession, 'invalid session')
    return { sessionId, apiSessionId: 'a', identityId: 'alice', serviceId: 'wiki' }
  }

  return {
    db,
    changeLog,
    routers,
    links,
    services,
    targets,
    dials,
    events,
    liveReplicas,
    replica(controllerId, channels = []) {
      liveReplicas.add(controllerId)
      const concern = circuitsConcern({
        db,
        log,
        controllerId,
        channels: { get: () => undefined, all: () => channels },
        messages: routers.messages,
        presence: {
          isOnline: (id) => routers.get(id).isOnline,
          replicas: () => liveReplicas,
        },
        topology: { path: pathOf },
        async linkUnknown(_routerId, linkId) {
          links.splice(links.indexOf(linkId), 1)
        },
        directory: {
          onChange(listener) {
            directory.add(listener)
            return { [Symbol.dispose]: () => void directory.delete(listener) }
          },
        },
        services: { find: async (id) => services.get(id) },
        pool,
        checkAccess,
        async checkDial({ accessToken, identityId, serviceId }) {
          if (accessToken !== `access of ${identityId}`)
            throw new AccessRefused(edgeErrorCode.invalidApiSession, 'invalid api session')
          return { sessionId: 's1', apiSessionId: 'a', identityId, serviceId }
        },
        events: { emit: (event) => void events.push(event) },
      })
      opened.push(concern)
      return concern
    },
    deleteRouter(id) {
      routers.get(id).isOnline = false
      for (const listener of directory) listener(id, undefined)
    },
    async circuits() {
      const { rows } = await db.query<{ id: string }>(sql`select id from circuit order by id`)
      return rows.map(({ id }) => id)
    },
    async [Symbol.asyncDispose]() {
      for (const concern of opened) await concern[Symbol.asyncDispose]()
      await store[Symbol.asyncDispose]()
    },
  }
}

export async function addSession(db: Database, id: string): Promise<void> {
  await db.query(sql`
    insert into session (id, token, type, api_session_id, service_id, identity_id)
    values (${id}, ${`token of ${id}`}, 'Dial', ${`a of ${id}`}, 'wiki', 'alice')`)
}

/** Breadth first over the links whose routers are online. */
function shortestPath(
  routers: FakeRouters,
  links: readonly string[],
  from: string,
  to: string,
): Path | undefined {
  let paths: readonly Path[] = [{ routerIds: [from], linkIds: [], cost: 0 }]
  for (let cost = 0; cost < 5; cost++) {
    const found = paths.find(({ routerIds }) => routerIds.at(-1) === to)
    if (found) return found
    paths = paths.flatMap(({ routerIds, linkIds }) =>
      links.flatMap((link) => {
        const ends = link.split('#', 1).join('').split('-')
        const last = routerIds.at(-1) ?? ''
        const [next = ''] = ends.includes(last) ? ends.filter((end) => end !== last) : []
        if (!next || routerIds.includes(next) || !routers.get(next).isOnline) return []
        return [{ routerIds: [...routerIds, next], linkIds: [...linkIds, link], cost: cost + 1 }]
      }),
    )
  }
  return undefined
}

/** Gives a message of a router to the handler of a replica, and waits until it is handled. */
export async function receive(
  replica: CircuitsConcern,
  router: FakeRouter,
  { type, headers = new Map(), body = Buffer.alloc(0) }: Outgoing,
): Promise<void> {
  const handler = replica.handlers.find((one) => one.type === type)
  if (!handler) throw new Error(`no handler of type ${type}`)
  const message: Message = { type, sequence: 1, headers, body: Buffer.from(body) }
  await handler.prepare(message, router.channel)()
}

/** As `receive`, for a request: returns the reply. */
export async function ask(
  replica: CircuitsConcern,
  router: FakeRouter,
  message: Outgoing,
): Promise<Outgoing> {
  const before = router.replies.length
  await receive(replica, router, message)
  for (;;) {
    const reply = router.replies[before]
    if (reply) return reply
    await new Promise(setImmediate)
  }
}

import type { Service } from '@overlay/model'
import {
  type Context,
  eachReplica,
  Fault,
  type Peers,
  type ProcessDescription,
  StatusServiceService,
} from '@overlay/rpc'
import type { Entities } from '../clients/services.js'
import { MAX_HEADS } from '../limits.js'

/** One replica of a service, and what it says about itself. */
export interface DescribedReplica {
  readonly service: Service | 'gateway' | 'all components'
  /** `host:port` or `unix:/path`. Empty: not known. */
  readonly address: string
  /** Absent: it has not answered in time. */
  readonly process?: ProcessDescription
  /** Why there is no answer. */
  readonly problem?: string
}

/** Asks all replicas at once. */
export type DescribeReplicas = (context: Context) => Promise<readonly DescribedReplica[]>

/** Asks every replica that this gateway knows. Those that do not answer are in the list, too. */
export const describeReplicas =
  (peers: Readonly<Record<Service, Peers>>): DescribeReplicas =>
  async (context) => {
    const services = Object.entries(peers) as [Service, Peers][]
    const described = await Promise.all(services.map((entry) => describeService(...entry, context)))
    return described.flat()
  }

async function describeService(
  service: Service,
  peers: Peers,
  context: Context,
): Promise<readonly DescribedReplica[]> {
  const replicas = eachReplica(StatusServiceService, peers)
  if (replicas.length === 0) return [{ service, address: 'no address', problem: 'cannot be found' }]
  return Promise.all(
    replicas.map(async ({ address, methods }) => {
      try {
        return { service, address, process: await methods.describe({}, context) }
      } catch (err) {
        return { service, address, problem: problemOf(err) }
      }
    }),
  )
}

function problemOf(err: unknown): string {
  if (!(err instanceof Fault)) throw err
  if (err.code === 'TIMEOUT') return 'does not answer'
  // a replica of a release without this method
  return err.code === 'UNHANDLED' ? 'cannot describe itself: an older release' : 'cannot be reached'
}

export type RouterLists = Pick<Entities, 'list'>

/** Enrolled edge routers that are not disabled and not connected. */
export interface OfflineRouters {
  readonly total: number
  /** The first ones by name. */
  readonly names: readonly string[]
}

const query = {
  filter: 'online = false and disabled = false and isVerified = true',
  sort: 'name asc',
  limit: '50',
  offset: '',
  roleFilter: [],
  roleSemantic: '',
  after: Buffer.alloc(0),
}
const request = { kind: 'edge-routers', query, within: undefined, perspective: undefined }

/** Undefined: their owner does not answer. */
export async function offlineRouters(
  { list }: RouterLists,
  context: Context,
): Promise<OfflineRouters | undefined> {
  try {
    const { rows, total } = await list(request, context)
    const routers = JSON.parse(rows.toString()) as readonly { readonly name: string }[]
    return { total, names: routers.map(({ name }) => name) }
  } catch (err) {
    if (err instanceof Fault && (err.code === 'UNAVAILABLE' || err.code === 'TIMEOUT')) return undefined
    throw err
  }
}

/** For how long followers have missed changes. */
export interface Lateness {
  /** The heads of all schemas at a time. */
  note(heads: ReadonlyMap<string, number>, atMs: number): void
  /** How long ago the oldest head was noted that the position has not reached. 0: it has reached all of them. */
  of(schema: string, position: number, atMs: number): number
}

interface Head {
  readonly number: number
  readonly atMs: number
}

/**
 * The positions of one moment do not distinguish a late follower from one that is a few milliseconds behind a busy owner.
 * So each poll remembers the heads, and a follower is late that has not reached the head of an earlier poll.
 */
export function openLateness(): Lateness {
  const polls = new Map<string, Head[]>()
  return {
    note(heads, atMs) {
      for (const [schema, number] of heads) {
        // of a restored backup
        const earlier = (polls.get(schema) ?? []).filter((head) => head.number < number)
        const same = polls.get(schema)?.find((head) => head.number === number)
        polls.set(schema, [...earlier, same ?? { number, atMs }].slice(-MAX_HEADS))
      }
    },
    of(schema, position, atMs) {
      const missed = polls.get(schema)?.find(({ number }) => number > position)
      return missed ? atMs - missed.atMs : 0
    },
  }
}

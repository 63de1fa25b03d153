import { describeProcess } from '@overlay/platform/process'
import type { Context, ProcessDescription } from '@overlay/rpc'
import { openLateness } from './lateness.js'
import type { DescribedReplica, DescribeReplicas } from './replicas.js'
import { type OfflineRouters, offlineRouters, type RouterLists } from './routers.js'

/** The state of the network's controller, as one gateway sees it. */
export interface NetworkStatus {
  readonly atMs: number
  /** The gateway that has asked the others. */
  readonly answeredBy: string
  readonly replicas: readonly DescribedReplica[]
  readonly follows: readonly Follow[]
  /** Undefined: their owner does not answer. */
  readonly offlineRouters: OfflineRouters | undefined
}

/** How far one replica is with the changes of another service. */
export interface Follow {
  readonly replica: DescribedReplica
  readonly schema: string
  readonly position: number | undefined
  /** Of the owner. Undefined: no replica of it answers. */
  readonly head: number | undefined
  /** For how long changes that a former look has seen are missing. 0: none is. */
  readonly lateMs: number
  readonly silentMs: number | undefined
}

export interface StatusDeps {
  readonly describeReplicas: DescribeReplicas
  readonly routers: RouterLists
  /** `host:port` of the APIs. */
  readonly address: string
}

/** A replica that is paused or away must not delay the page longer. */
const LIMIT_MS = 2000

/** Asks all processes when it is called, and does nothing otherwise. */
export function openStatus({ describeReplicas, routers, address }: StatusDeps) {
  const lateness = openLateness()
  return async (request: Context): Promise<NetworkStatus> => {
    const context = { ...request, deadline: new Date(Date.now() + LIMIT_MS) }
    const [own, others, offline] = await Promise.all([
      describeProcess({ hasRouters: false }),
      describeReplicas(context),
      offlineRouters(routers, context),
    ])
    const replicas = countedOnce({ service: 'gateway', address, process: own }, others)
    const heads = headsOf(replicas)
    const at = performance.now()
    lateness.note(heads, at)
    return {
      atMs: Date.now(),
      answeredBy: nameOf(own),
      replicas,
      follows: replicas.flatMap((replica) =>
        (replica.process?.followed ?? []).map(({ schema, position, silentMs }) => ({
          replica,
          schema,
          position,
          head: heads.get(schema),
          lateMs: lateness.of(schema, position ?? 0, at),
          silentMs,
        })),
      ),
      offlineRouters: offline,
    }
  }
}

export type ReadStatus = ReturnType<typeof openStatus>

export const nameOf = ({ host, pid }: Pick<ProcessDescription, 'host' | 'pid'>): string => `${host}/${pid}`

export const releaseOf = ({ version, revision }: Pick<ProcessDescription, 'version' | 'revision'>): string =>
  `${version} (${revision})`

/** A process that runs all parts has in its first row what it counts for all of them. */
function countedOnce(
  own: DescribedReplica & { readonly process: ProcessDescription },
  others: readonly DescribedReplica[],
): readonly DescribedReplica[] {
  let isShared = false
  const rest = others.map((replica) => {
    const { process } = replica
    // containers may have the same process id
    const isOwn = process?.startedAtMs === own.process.startedAtMs && nameOf(process) === nameOf(own.process)
    if (!isOwn) return replica
    isShared = true
    return { ...replica, process: { ...process, ...countedElsewhere } }
  })
  return [isShared ? { ...own, service: 'all parts' } : own, ...rest]
}

const countedElsewhere = {
  pool: undefined,
  followed: [],
  queues: [],
  certificates: [],
  slowRequests: [],
  refusals: [],
}

export const isService = (service: DescribedReplica['service']): boolean =>
  service !== 'gateway' && service !== 'all parts'

/** The newest position of each schema that one of its owners knows. */
function headsOf(replicas: readonly DescribedReplica[]): ReadonlyMap<string, number> {
  const heads = new Map<string, number>()
  for (const { service, process } of replicas)
    if (process && isService(service)) heads.set(service, Math.max(heads.get(service) ?? 0, process.position))
  return heads
}

import { describeProcess } from '@overlay/process'
import type { Context, ProcessDescription } from '@overlay/rpc'
import { DESCRIBE_MS } from '../limits.js'
import {
  type DescribedReplica,
  type DescribeReplicas,
  type OfflineRouters,
  offlineRouters,
  openLateness,
  type RouterLists,
} from './sources.js'

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
  /** For how long changes that an earlier poll has found are missing. 0: none is. */
  readonly lateMs: number
  readonly silentMs: number | undefined
}

export interface StatusOptions {
  readonly describeReplicas: DescribeReplicas
  readonly routers: RouterLists
  /** `host:port` of the APIs. */
  readonly address: string
}

/** Asks all processes when it is called, and does nothing otherwise. */
export function openStatus({ describeReplicas, routers, address }: StatusOptions) {
  const lateness = openLateness()
  return async (request: Context): Promise<NetworkStatus> => {
    const context = { ...request, deadline: new Date(Date.now() + DESCRIBE_MS) }
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

/** A process of several components has a row of its own, with what it counts for all of them. */
function countedOnce(
  own: DescribedReplica,
  others: readonly DescribedReplica[],
): readonly DescribedReplica[] {
  const rows = [own, ...others]
  const counts = new Map<string | undefined, number>()
  for (const row of rows) counts.set(processOf(row), (counts.get(processOf(row)) ?? 0) + 1)
  const wholes = new Map<string, DescribedReplica>()
  const rest: DescribedReplica[] = []
  for (const row of rows) {
    const [name, { process }] = [processOf(row), row]
    if (!process || name === undefined || counts.get(name) === 1) {
      rest.push(row)
      continue
    }
    if (!wholes.has(name))
      wholes.set(name, { ...row, service: 'all components', address: row === own ? own.address : '' })
    if (row !== own) rest.push({ ...row, process: { ...process, ...countedElsewhere } })
  }
  return [...wholes.values(), ...rest]
}

/** Containers may have the same process id. */
const processOf = ({ process }: DescribedReplica): string | undefined =>
  process && `${nameOf(process)} ${process.startedAtMs}`

const countedElsewhere = {
  pool: undefined,
  followed: [],
  queues: [],
  certificates: [],
  slowRequests: [],
  refusals: [],
}

export const isService = (service: DescribedReplica['service']): boolean =>
  service !== 'gateway' && service !== 'all components'

/** The newest position of each schema that one of its owners knows. */
function headsOf(replicas: readonly DescribedReplica[]): ReadonlyMap<string, number> {
  const heads = new Map<string, number>()
  for (const { service, process } of replicas)
    if (process && isService(service)) heads.set(service, Math.max(heads.get(service) ?? 0, process.position))
  return heads
}

import type { Service } from '@overlay/model'
import {
  type Context,
  eachReplica,
  Fault,
  type Peers,
  type ProcessDescription,
  StatusServiceService,
} from '@overlay/rpc'

/** One replica of a service, and what it says about itself. */
export interface DescribedReplica {
  readonly service: Service | 'gateway' | 'all parts'
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

import { edgeErrorCode } from '@overlay/channel'
import { defaultTerminatorStrategy, isTerminatorStrategy } from '@overlay/model'
import { batch, type Database } from '@overlay/store/postgres'
import { AccessRefused } from '../domain/router-access.js'
import type { TerminatorCosts } from '../domain/terminator-costs.js'
import { bestOf, MAX_COST } from '../domain/terminator-precedence.js'
import { MAX_CANDIDATES } from '../limits.js'
import {
  type CandidateRow,
  candidatesOf,
  type DialedInstance,
  hasTerminators,
} from '../store/terminator-candidate.js'
import { actorOf } from './actor.js'
import type { ServiceDirectory } from './service-directory.js'
import { openStrategies } from './strategies.js'
import type { TerminatorUpdate } from './update-terminators.js'

/** A terminator that a circuit can end at. */
export interface DialTarget {
  readonly id: string
  readonly routerId: string
  readonly serviceId: string
  readonly binding: string
  readonly address: string
  readonly instanceId: string
  readonly hostId: string
  /** By key; for the dialer. */
  readonly peerData: ReadonlyMap<number, Buffer>
}

export interface TargetRequest {
  readonly serviceId: string
  readonly instanceId: string
  /** Terminator that the client used before, for the sticky strategy; empty: none. */
  readonly stickinessToken: string
  /** Cost of the path from the router of the dialer; undefined: there is none, or the router is offline. */
  pathCost(routerId: string): number | undefined
  /** Terminators that have failed during this dial. */
  readonly excluded: ReadonlySet<string>
}

/** Throws AccessRefused (invalid terminator) with the text that clients of the original see. */
export interface TerminatorPool {
  select(request: TargetRequest): Promise<{ readonly target: DialTarget; readonly stickinessToken: string }>
  /** For dynamic costs. */
  dialSucceeded(target: DialTarget): void
  dialFailed(target: DialTarget): void
  circuitOpened(terminatorId: string): void
  /** Only if this replica has opened it. Ends by other replicas are noticed within a minute. */
  circuitClosed(terminatorId: string): void
  /** The router does not know the terminator. */
  deleteUnknown(target: DialTarget): Promise<void>
  /** The terminator cannot be used as it is configured. */
  markFailed(target: DialTarget): Promise<void>
}

export interface PoolDeps {
  readonly db: Database
  /** Controller id of this replica. */
  readonly replicaId: string
  readonly services: Pick<ServiceDirectory, 'find'>
  readonly costs: TerminatorCosts
  readonly update: (update: TerminatorUpdate) => Promise<void>
  readonly remove: (removal: {
    ids: readonly string[]
    routerId: string
    by: ReturnType<typeof actorOf>
  }) => Promise<unknown>
  readonly random?: () => number
}

/**
 * Selects terminators. Dials that are under way share one query. The dynamic cost is exact for this replica, and some
 * seconds old for others.
 */
export function openTerminatorPool(deps: PoolDeps): TerminatorPool {
  const { db, replicaId, services, costs, update, remove, random = Math.random } = deps
  const strategies = openStrategies()
  const read = batch<DialedInstance, readonly CandidateRow[]>(async (instances) => {
    const found: CandidateRow[][] = instances.map(() => [])
    for (const row of await candidatesOf(db, instances, replicaId, MAX_CANDIDATES))
      found[row.place]?.push(row)
    return found
  })

  return {
    async select(request) {
      const { serviceId, instanceId, stickinessToken, excluded } = request
      const [service, rows] = await Promise.all([
        services.find(serviceId),
        read({ serviceId, instanceId, terminatorId: stickinessToken }),
      ])
      if (!service) throw new AccessRefused(edgeErrorCode.invalidService, 'invalid service')
      const name = service.terminatorStrategy || defaultTerminatorStrategy
      if (!isTerminatorStrategy(name)) throw refused(`terminatorStrategy with name ${name} not found`)
      const strategy = strategies[name]
      const candidates = reachable(rows, request, costs).filter(({ id }) => !excluded.has(id))
      const selected = strategy.choose(bestOf(candidates), { serviceId, instanceId, stickinessToken, random })
      if (!selected) throw await refusalFor(db, request, rows.length > 0)
      return {
        target: targetOf(selected.row, request),
        stickinessToken: strategy.givesToken ? selected.id : '',
      }
    },

    dialSucceeded: ({ id }) => costs.dialSucceeded(id),
    dialFailed: ({ id }) => costs.dialFailed(id),
    circuitOpened: costs.circuitOpened,
    circuitClosed: costs.circuitClosed,

    async deleteUnknown({ id, routerId }) {
      await remove({ ids: [id], routerId, by: actorOf(routerId) })
    },

    async markFailed({ id, routerId }) {
      try {
        await update({ id, routerId, precedence: 'failed', by: actorOf(routerId) })
      } catch (err) {
        if (!(err instanceof AccessRefused)) throw err // deleted meanwhile, or on another router
      }
    },
  }
}

const refused = (text: string) => new AccessRefused(edgeErrorCode.invalidTerminator, text)

function reachable(rows: readonly CandidateRow[], { pathCost }: TargetRequest, costs: TerminatorCosts) {
  const paths = new Map<string, number | undefined>()
  return rows.flatMap((row) => {
    const { id, routerId, precedence } = row
    if (!paths.has(routerId)) paths.set(routerId, pathCost(routerId))
    const path = paths.get(routerId)
    const dynamicCost = Math.min(MAX_COST, row.otherCost + costs.costOf(id))
    return path === undefined ? [] : [{ id, precedence, cost: row.cost + dynamicCost + path, row }]
  })
}

/** wire: the texts with which a dial fails at the client. */
async function refusalFor(
  db: Database,
  { serviceId, instanceId }: TargetRequest,
  hasInstances: boolean,
): Promise<AccessRefused> {
  if (hasInstances)
    return refused(`service ${serviceId} has no online terminators for instanceId ${instanceId}`)
  if (await hasTerminators(db, serviceId))
    return refused(`service ${serviceId} has no terminators for instanceId ${instanceId}`)
  return refused(`service ${serviceId} has no terminators`)
}

const targetOf = (row: CandidateRow, { serviceId, instanceId }: TargetRequest): DialTarget => ({
  id: row.id,
  routerId: row.routerId,
  serviceId,
  binding: row.binding,
  address: row.address,
  instanceId,
  hostId: row.hostId,
  peerData: peerDataOf(row.peerData),
})

const peerDataOf = (stored: CandidateRow['peerData']): ReadonlyMap<number, Buffer> =>
  new Map(Object.entries(stored).map(([key, value]) => [Number(key), Buffer.from(value, 'base64')]))

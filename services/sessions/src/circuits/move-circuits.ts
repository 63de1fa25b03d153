import { setTimeout as delay } from 'node:timers/promises'
import { metrics } from '@overlay/process'
import { boundedQueue, pagesOf } from '@overlay/process/async'
import { routePlan } from '../domain/route-plan.js'
import { MOVE_PAGE, MOVE_PAUSE_MS, MOVE_QUEUE, MOVE_ROUTE_MS } from '../limits.js'
import type { Circuit } from '../store/circuit.js'
import { ended } from '../store/end-circuits.js'
import { claimMoves, completeMoves, continueMoves, type NewPath, savePaths } from '../store/move-circuits.js'
import type { CircuitDeps } from './circuit-deps.js'
import { type CircuitEvents, circuitTags } from './circuit-events.js'
import type { Ending } from './end-circuits.js'
import { RouteFailed, sendRoute, sendUnroute } from './send-route.js'

export interface MoveOptions {
  /** A link that the topology may still have. */
  readonly withoutLink?: string
}

/** Moves circuits to the cheapest paths of now. Ends those that cannot be moved. */
export type MoveCircuits = (ids: readonly string[], options?: MoveOptions) => Promise<void>

export type MoveDeps = Pick<CircuitDeps, 'db' | 'messages' | 'topology' | 'linkUnknown' | 'presence'> & {
  readonly ending: Ending
  readonly circuitEvents: CircuitEvents
}

/** wire: routers of 1.1.13 handle a route with this attempt as the reroute of an existing circuit. */
const MOVE_ATTEMPT = 99_969_996
const TRIES = 3

/**
 * One replica at a time moves a circuit: it holds the claim in the row. A request during the move gives the circuit
 * another version, and the replica moves it once more.
 */
export function openCircuitMover(deps: MoveDeps): MoveCircuits {
  const queue = boundedQueue(MOVE_QUEUE)
  return async (ids, options = {}) => {
    await Promise.all(pagesOf(ids, MOVE_PAGE).map((page) => queue(() => movePage(deps, page, options))))
  }
}

async function movePage(deps: MoveDeps, ids: readonly string[], options: MoveOptions): Promise<void> {
  const { db } = deps
  const failures = new Map<string, number>()
  const routers = new Map<string, Set<string>>() // that were sent a route of a circuit
  let circuits = await claimMoves(db, ids)
  while (circuits.length > 0) {
    for (const { id, routerIds } of circuits) {
      routers.set(id, new Set([...(routers.get(id) ?? []), ...routerIds]))
    }
    const given = circuits.filter(({ id }) => (failures.get(id) ?? 0) >= TRIES)
    const rest = circuits.filter((circuit) => !given.includes(circuit))
    const over = new Set((await giveUp(deps, given)).map(({ id }) => id))
    const moved = await tryPaths(deps, rest, options)
    for (const { id } of moved.failed) failures.set(id, (failures.get(id) ?? 0) + 1)
    const done = await completeMoves(db, [...moved.routed, ...moved.parked])
    for (const circuit of moved.routed) {
      if (done.has(circuit.id)) finish(deps, circuit, routers.get(circuit.id) ?? new Set())
    }
    const left = circuits.map(({ id }) => id).filter((id) => !done.has(id) && !over.has(id))
    if (left.length === 0) return
    if (moved.failed.length > 0) await delay(MOVE_PAUSE_MS)
    circuits = await continueMoves(db, left)
  }
}

async function giveUp({ ending }: MoveDeps, circuits: readonly Circuit[]): Promise<readonly Circuit[]> {
  if (circuits.length === 0) return []
  metrics.circuitMoved.inc({ outcome: 'ended' }, circuits.length)
  return ending.end(ended.inVersions(circuits), 'path')
}

interface Tried {
  readonly routed: Circuit[]
  /** Unchanged: a router where it begins or ends is offline, and may carry it nevertheless. */
  readonly parked: Circuit[]
  readonly failed: Circuit[]
}

async function tryPaths(
  { db, messages, topology, linkUnknown, presence }: MoveDeps,
  circuits: readonly Circuit[],
  { withoutLink }: MoveOptions,
): Promise<Tried> {
  const tried: Tried = { routed: [], parked: [], failed: [] }
  const paths: NewPath[] = []
  for (const circuit of circuits) {
    const { id, version, routerIds } = circuit
    const [first = '', last = ''] = [routerIds[0], routerIds.at(-1)]
    const path = topology.path(first, last)
    if (!presence.isOnline(first) || !presence.isOnline(last)) tried.parked.push(circuit)
    else if (!path || (withoutLink !== undefined && path.linkIds.includes(withoutLink)))
      tried.failed.push(circuit)
    else paths.push({ id, version, routerIds: path.routerIds, linkIds: path.linkIds })
  }
  const saved = paths.length > 0 ? await savePaths(db, paths) : []
  await Promise.all(
    saved.map(async (circuit) => {
      const options = {
        circuitId: circuit.id,
        attempt: MOVE_ATTEMPT,
        timeoutMs: MOVE_ROUTE_MS,
        tags: circuitTags(circuit),
        egress: undefined, // a router that has lost its end of the circuit must fail, not dial the host again
      }
      const sent = routePlan(circuit).map((route) => sendRoute(messages, route, options))
      const answers = await Promise.allSettled(sent)
      const isRouted = answers.every(({ status }) => status === 'fulfilled')
      for (const answer of answers) {
        const err: unknown = answer.status === 'rejected' ? answer.reason : undefined
        if (err instanceof RouteFailed && err.unknownLinkId !== undefined)
          await linkUnknown(err.routerId, err.unknownLinkId)
      }
      tried[isRouted ? 'routed' : 'failed'].push(circuit)
    }),
  )
  return tried
}

function finish({ messages, circuitEvents }: MoveDeps, circuit: Circuit, routed: ReadonlySet<string>): void {
  const dropped = [...routed].filter((routerId) => !circuit.routerIds.includes(routerId))
  sendUnroute(messages, circuit.id, dropped, true)
  circuitEvents.moved(circuit)
  metrics.circuitMoved.inc({ outcome: 'moved' })
}

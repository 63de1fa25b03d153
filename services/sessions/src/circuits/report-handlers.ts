import { CircuitConfirmation, ctrlType, Fault, FaultSubject, routeResultHeader } from '@overlay/channel'
import { metrics } from '@overlay/process'
import { pagesOf } from '@overlay/process/async'
import { batch } from '@overlay/store/postgres'
import { type Handler, onMessage } from '../channel/handlers.js'
import type { RouterChannel } from '../channel/router-channel.js'
import { LIST_BYTES, LONGEST_ID_LIST, MOST_REPORTED_CIRCUITS, REPORT_PAGE } from '../limits.js'
import { type Circuit, circuitsById } from '../store/circuit.js'
import { type EndReport, ended, endReported } from '../store/end-circuits.js'
import type { CircuitDeps } from './circuit-deps.js'
import type { Ending } from './end-circuits.js'
import type { MoveCircuits } from './move-circuits.js'
import { unroute } from './send-route.js'

type ReportDeps = Pick<CircuitDeps, 'db' | 'services'> & {
  readonly ending: Ending
  readonly move: MoveCircuits
}

/** A circuit that is idle for longer has a row, unless it has ended: setting it up takes less time. */
const SETTLED_NANOSECONDS = 45_000_000_000n
const NANOSECONDS = 1_000_000n

/** What routers report about circuits. */
export function handleCircuitReports({ db, services, ending, move }: ReportDeps): readonly Handler[] {
  const report = batch((reports: readonly EndReport[]) => endReported(db, reports))

  /** Refuses circuits that do not run over the router. */
  const isOver = ({ routerIds }: Circuit, { routerId }: RouterChannel): boolean => {
    const isOwn = routerIds.includes(routerId)
    if (!isOwn) metrics.routerMessagesForbidden.inc({ subject: 'circuit' })
    return isOwn
  }

  async function closed(circuitId: string, { routerId }: RouterChannel): Promise<void> {
    const circuit = await report({ circuitId, routerId })
    if (circuit === 'foreign') metrics.routerMessagesForbidden.inc({ subject: 'circuit' })
    else if (circuit !== 'unknown') ending.announce([circuit], 'closed', false)
  }

  async function notForwarded(
    ids: readonly string[],
    isOwned: boolean,
    router: RouterChannel,
  ): Promise<void> {
    await inPages(ids, router, async (page) => {
      const circuits = await circuitsById(db, page)
      if (isOwned) for (const id of page) if (!circuits.has(id)) router.channel.send(unroute(id, true))
      const own = [...circuits.values()].filter((circuit) => isOver(circuit, router))
      await move(own.map(({ id }) => id))
    })
  }

  async function confirm(
    { circuitIds, idleTimes }: CircuitConfirmation,
    router: RouterChannel,
  ): Promise<void> {
    await inPages(circuitIds, router, async (page) => {
      const circuits = await circuitsById(db, page)
      const idle: string[] = []
      for (const id of page) {
        const circuit = circuits.get(id)
        const nanoseconds = idleTimes.get(id) ?? SETTLED_NANOSECONDS
        if (circuit && isOver(circuit, router)) {
          if (await isTooIdle(circuit, router, nanoseconds)) idle.push(id)
        } else if (nanoseconds >= SETTLED_NANOSECONDS) router.channel.send(unroute(id, true))
      }
      if (idle.length > 0) await ending.end(ended.byId(idle), 'idle')
    })
  }

  async function isTooIdle(
    { serviceId, routerIds }: Circuit,
    { routerId }: RouterChannel,
    nanoseconds: bigint,
  ): Promise<boolean> {
    if (routerIds[0] !== routerId && routerIds.at(-1) !== routerId) return false
    const { maxIdleTimeMillis = 0 } = (await services.find(serviceId)) ?? {}
    return maxIdleTimeMillis > 0 && nanoseconds >= BigInt(maxIdleTimeMillis) * NANOSECONDS
  }

  /** A router that answers after the timeout carries a circuit that has failed. */
  async function routedAfterTimeout(circuitId: string, { routerId, channel }: RouterChannel): Promise<void> {
    const circuit = (await circuitsById(db, [circuitId])).get(circuitId)
    if (!circuit?.routerIds.includes(routerId)) channel.send(unroute(circuitId, true))
  }

  return [
    onMessage(
      ctrlType.fault,
      Fault,
      ({ subject, id }, _message, router) => {
        switch (subject) {
          case FaultSubject.INGRESS:
          case FaultSubject.EGRESS:
            return closed(id, router)
          case FaultSubject.FORWARD:
          case FaultSubject.FORWARD_UNKNOWN_OWNER:
            return notForwarded(circuitIdsIn(id), subject === FaultSubject.FORWARD, router)
        }
      },
      { mostBytes: LIST_BYTES, items: ({ id }) => circuitIdsIn(id).length },
    ),
    onMessage(
      ctrlType.circuitConfirmation,
      CircuitConfirmation,
      (body, _message, router) => confirm(body, router),
      {
        mostBytes: LIST_BYTES,
        items: ({ circuitIds }) => Math.min(circuitIds.length, MOST_REPORTED_CIRCUITS),
      },
    ),
    {
      type: ctrlType.routeResult,
      prepare: ({ headers, body }, router) => {
        const circuitId = body.toString()
        return () =>
          headers.has(routeResultHeader.success) ? routedAfterTimeout(circuitId, router) : undefined
      },
    },
  ]
}

/** Separated by spaces. The last one of a list that is cut may be incomplete. */
function circuitIdsIn(list: string): readonly string[] {
  const ids = list.slice(0, LONGEST_ID_LIST).split(' ', MOST_REPORTED_CIRCUITS + 1)
  if (list.length > LONGEST_ID_LIST && ids.length <= MOST_REPORTED_CIRCUITS) ids.pop()
  return ids.slice(0, MOST_REPORTED_CIRCUITS).filter(Boolean)
}

/** Ends with the connection, and lets the router take the answers to one page before those to the next. */
async function inPages(
  ids: readonly string[],
  { channel }: RouterChannel,
  handle: (page: readonly string[]) => Promise<void>,
): Promise<void> {
  for (const page of pagesOf(ids.slice(0, MOST_REPORTED_CIRCUITS), REPORT_PAGE)) {
    if (channel.closed.aborted) return
    await handle(page)
    await channel.drained().catch(() => undefined) // closed
  }
}

import type { PlainOf, terminator } from '@overlay/model'
import { coalesced } from '@overlay/process/async'
import type { FabricEvent, FabricEvents, RowChange } from '@overlay/store/change-log'
import type { Db } from '@overlay/store/postgres'
import type { Logger } from 'pino'
import { MAX_PENDING_EVENTS } from '../limits.js'
import type { RouterPresence } from '../routers/router-presence.js'
import { countTerminators, type TerminatorCount } from '../store/terminator.js'

type Plain = PlainOf<typeof terminator>

export interface EventDeps {
  readonly db: Db
  readonly presence: Pick<RouterPresence, 'isOnline'>
  readonly events: FabricEvents
  readonly costOf: (terminatorId: string) => number
  readonly log: Logger
}

const NAMESPACE = 'fabric.terminators'

/** Publishes changes of terminators. Changes that are under way share the query for the numbers of their services. */
export function terminatorEvents(deps: EventDeps): (changes: readonly RowChange[]) => void {
  const { db, events, log } = deps
  let pending: { readonly change: RowChange; readonly at: Date }[] = []
  const publish = coalesced(async () => {
    const due = pending
    pending = []
    const services = new Set(due.map(({ change }) => plainOf(change).service))
    const counts = await countTerminators(db, [...services])
    for (const { change, at } of due) events.emit(eventOf(deps, change, at, counts))
  })
  return (changes) => {
    if (changes.length === 0) return
    const at = new Date()
    for (const change of changes) if (pending.length < MAX_PENDING_EVENTS) pending.push({ change, at })
    publish().catch((err: unknown) => log.warn({ err }, 'events of terminators not published'))
  }
}

/** One of both is there. */
const plainOf = ({ before, after }: RowChange): Plain => (after ?? before) as Plain

function eventOf(
  { presence, costOf }: EventDeps,
  change: RowChange,
  at: Date,
  counts: readonly TerminatorCount[],
): FabricEvent {
  const { service, router, hostId, precedence, cost } = plainOf(change)
  const ofService = counts.filter(({ serviceId }) => serviceId === service)
  const sum = (some: readonly TerminatorCount[]): number => some.reduce((n, { count }) => n + count, 0)
  const usable = (which: string): number =>
    sum(ofService.filter((one) => one.precedence === which && presence.isOnline(one.routerId)))
  return {
    namespace: NAMESPACE,
    event_type: change.before === null ? 'created' : change.after === null ? 'deleted' : 'updated',
    timestamp: at.toISOString(),
    service_id: service,
    terminator_id: change.id,
    router_id: router,
    host_id: hostId,
    router_online: presence.isOnline(router),
    precedence,
    static_cost: cost,
    dynamic_cost: costOf(change.id),
    total_terminators: sum(ofService),
    usable_default_terminators: usable('default'),
    usable_required_terminators: usable('required'),
  }
}

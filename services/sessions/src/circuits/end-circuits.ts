import { metrics } from '@overlay/process'
import type { Sql } from 'sql-template-tag'
import { END_PAGE } from '../limits.js'
import type { Circuit } from '../store/circuit.js'
import { endCircuits } from '../store/end-circuits.js'
import type { CircuitDeps } from './circuit-deps.js'
import type { CircuitEvents } from './circuit-events.js'
import { sendUnroute } from './send-route.js'

/** Why a circuit ends: in metrics. */
export type EndReason =
  | 'closed' // by the client or the host
  | 'idle'
  | 'session'
  | 'terminator'
  | 'router' // the one where it begins or ends is deleted or offline
  | 'path' // there is no other one
  | 'unknown' // to the routers where it begins or ends
  | 'admin'

export interface Ending {
  /** Ends circuits at once, in pages. Returns those that it has ended. */
  end(which: Sql, reason: EndReason): Promise<readonly Circuit[]>
  /** Notifies routers, events and costs of circuits whose rows are deleted. `now`: data under way is lost. */
  announce(circuits: readonly Circuit[], reason: EndReason, now: boolean): void
}

export function openCircuitEnding({
  db,
  controllerId,
  messages,
  pool,
  circuitEvents,
}: Pick<CircuitDeps, 'db' | 'controllerId' | 'messages' | 'pool'> & {
  readonly circuitEvents: CircuitEvents
}): Ending {
  function announce(circuits: readonly Circuit[], reason: EndReason, now: boolean): void {
    for (const circuit of circuits) {
      sendUnroute(messages, circuit.id, circuit.routerIds, now)
      if (circuit.controllerId === controllerId) pool.circuitClosed(circuit.terminatorId)
      circuitEvents.deleted(circuit)
      metrics.circuitEnded.inc({ reason })
    }
  }
  return {
    announce,
    async end(which, reason) {
      const all: Circuit[] = []
      for (;;) {
        const page = await endCircuits(db, which, END_PAGE)
        announce(page, reason, true)
        for (const circuit of page) all.push(circuit)
        if (page.length < END_PAGE) return all
      }
    },
  }
}

import type { RowChange } from './append.js'
import type { Bus } from './bus.js'
import type { ChangeLog } from './change-log.js'

/**
 * An event of the network, in the JSON of the original's event streams: `namespace` is for example `fabric.circuits`,
 * `fabric.routers`, `fabric.terminators`, `fabric.links`, `edge.sessions`, `edge.apiSessions`.
 */
export interface FabricEvent {
  readonly namespace: string
  readonly event_type?: string
  /** RFC 3339. Defaults to now. */
  readonly timestamp?: string
  readonly [member: string]: unknown
}

/** Publishes events on the bus, for programs and for the event streams of the gateways. Never throws. */
export interface FabricEvents {
  emit(event: FabricEvent): void
}

/** Events have the subject `overlay.events.<namespace>`. */
export const EVENT_SUBJECT = 'overlay.events'

export const fabricEvents = (bus: Pick<Bus, 'publish'>): FabricEvents => ({
  emit({ namespace, event_type, timestamp = new Date().toISOString(), ...members }) {
    bus.publish(`${EVENT_SUBJECT}.${namespace}`, { namespace, event_type, timestamp, ...members })
  },
})

/** The same change log. `listener` receives the changes of each write after its commit. It must not throw. */
export const announcing = (
  changeLog: ChangeLog,
  listener: (changes: readonly RowChange[]) => void,
): ChangeLog => ({
  ...changeLog,
  async write(context, work) {
    let changes: readonly RowChange[] = []
    const written = await changeLog.write(context, async (tx) => {
      const outcome = await work(tx)
      changes = outcome.changes
      return outcome
    })
    listener(changes)
    return written
  },
})

import { Alerts, ctrlType, UpdateRouterInterfaces } from '@overlay/channel'
import type { FabricEvents } from '@overlay/store/change-log'
import type { Db } from '@overlay/store/postgres'
import { type Concern, onMessage } from '../channel/handlers.js'
import { answer, failed, succeeded } from '../channel/replies.js'
import { alertEvents } from '../domain/alert-events.js'
import { interfacesOf } from '../domain/network-interfaces.js'
import { UNITS_PER_ITEM, UNITS_PER_REPORT } from '../limits.js'
import { saveInterfaces } from '../store/router-interfaces.js'

export interface ReportDeps {
  readonly db: Db
  readonly events: FabricEvents
  /** Of this replica. */
  readonly controllerId: string
}

/** What routers report about themselves, for operators. */
export const routerReports = ({ db, events, controllerId }: ReportDeps): Concern => ({
  handlers: [
    onMessage(
      ctrlType.updateRouterInterfaces,
      UpdateRouterInterfaces,
      ({ interfaces: reported }, message, router) =>
        answer(router, message, failed, async () => {
          const interfaces = interfacesOf(reported)
          if (interfaces) await saveInterfaces(db, router.routerId, interfaces)
          return succeeded() // a router repeats what is refused
        }),
      { items: () => UNITS_PER_REPORT / UNITS_PER_ITEM },
    ),
    onMessage(
      ctrlType.alerts,
      Alerts,
      ({ alerts }, _message, { routerId }) => {
        for (const event of alertEvents(alerts, routerId))
          events.emit({ ...event, event_src_id: controllerId })
      },
      { items: ({ alerts }) => alerts.length },
    ),
  ],
})

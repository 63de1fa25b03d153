import type { Database } from '@overlay/store/postgres'
import type { Logger } from 'pino'
import type { CheckAccess } from '../access/router-access.js'
import type { FabricEvents } from '../control/fabric-events.js'
import type { RouterChannels, RouterMessages } from '../control/router-channel.js'
import type { RouterDirectory } from '../control/router-directory.js'
import type { RouterPresence } from '../control/router-presence.js'
import type { Topology } from '../links/topology.js'
import type { ServiceDirectory } from '../terminators/service-directory.js'
import type { TerminatorPool } from '../terminators/terminator-pool.js'

/** What circuits use of other concerns. */
export interface CircuitDeps {
  readonly db: Database
  readonly log: Logger
  /** Of this replica. */
  readonly controllerId: string
  /** Connected to this replica. */
  readonly channels: RouterChannels
  /** To routers at any replica. */
  readonly messages: RouterMessages
  readonly presence: Pick<RouterPresence, 'isOnline' | 'replicas'>
  readonly topology: Pick<Topology, 'path'>
  readonly directory: Pick<RouterDirectory, 'onChange'>
  readonly services: Pick<ServiceDirectory, 'find'>
  readonly pool: TerminatorPool
  readonly checkAccess: CheckAccess
  readonly events: FabricEvents
}

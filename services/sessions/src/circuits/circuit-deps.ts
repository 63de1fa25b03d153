import type { FabricEvents } from '@overlay/store/change-log'
import type { Database } from '@overlay/store/postgres'
import type { Logger } from 'pino'
import type { RouterChannels, RouterMessages } from '../channel/router-channel.js'
import type { CheckAccess, CheckDial } from '../domain/router-access.js'
import type { Topology } from '../links/topology.js'
import type { RouterDirectory } from '../routers/router-directory.js'
import type { RouterPresence } from '../routers/router-presence.js'
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
  /** A router does not have this link. Resolves when no new path uses it. */
  readonly linkUnknown: (routerId: string, linkId: string) => Promise<void>
  readonly directory: Pick<RouterDirectory, 'onChange'>
  readonly services: Pick<ServiceDirectory, 'find'>
  readonly pool: TerminatorPool
  readonly checkAccess: CheckAccess
  readonly checkDial: CheckDial
  readonly events: FabricEvents
}

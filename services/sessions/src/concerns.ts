import type { Bus, ChangeLog, FabricEvents } from '@overlay/store/change-log'
import type { Logger } from 'pino'
import { type AccessDeps, accessConcern } from './access/access-concern.js'
import type { Concern } from './channel/handlers.js'
import type { RouterChannels, RouterMessages } from './channel/router-channel.js'
import type { SyncReport } from './channel/router-status.js'
import type { Circuits } from './circuits/circuits.js'
import { circuitsConcern } from './circuits/circuits-concern.js'
import type { LiveTopology } from './links/topology.js'
import { type ModelConcern, type ModelDeps, modelConcern } from './model/model-concern.js'
import type { RouterDirectory } from './routers/router-directory.js'
import type { RouterPresence } from './routers/router-presence.js'
import type { ServiceDirectory } from './terminators/service-directory.js'
import {
  type TerminatorDeps,
  type Terminators,
  terminatorsConcern,
} from './terminators/terminators-concern.js'
import { type TunnelOptions, tunnelConcern } from './tunnel/tunnel-concern.js'

/** What the concerns share. */
export interface ControlCore {
  /** Empty: this replica takes no connections. */
  readonly controllerId: string
  readonly channels: RouterChannels
  readonly messages: RouterMessages
  readonly directory: RouterDirectory
  readonly presence: RouterPresence
  readonly sync: SyncReport
  readonly topology: LiveTopology
  /** A router does not have this link. */
  readonly linkUnknown: (routerId: string, linkId: string) => Promise<void>
  readonly changeLog: ChangeLog
  readonly bus: Bus
  readonly events: FabricEvents
  readonly log: Logger
}

/** The services that the concerns call and follow, and what they use of this one. */
export interface ControlOwners
  extends Pick<AccessDeps, 'createSession' | 'grantWatch' | 'heads' | 'policyHead' | 'tokens'>,
    Pick<TerminatorDeps, 'deleteRouter'> {
  readonly identity: AccessDeps['identity'] & { readonly calls: TunnelOptions['identity'] }
  readonly policy: TunnelOptions['policy'] & { readonly calls: AccessDeps['policy'] & ModelDeps['policy'] }
  readonly pki: ModelDeps['pki']
  readonly services: ServiceDirectory
}

export interface Traffic extends AsyncDisposable {
  readonly concerns: readonly Concern[]
  readonly circuits: Circuits
  readonly terminators: Pick<Terminators, 'written'>
  readonly model: Pick<ModelConcern, 'validateModel'>
}

/** API sessions, data models, terminators, circuits and tunnels of routers. */
export async function openTraffic(core: ControlCore, owners: ControlOwners): Promise<Traffic> {
  const { controllerId, changeLog } = core
  const { identity, policy, pki } = owners
  const access = await accessConcern({ ...core, ...owners, policy: policy.calls })
  const model = await modelConcern({ ...core, policy: policy.calls, pki, access })
  const { checkAccess, checkDial } = access
  const terminators = terminatorsConcern({
    ...core,
    ...owners,
    replicaId: controllerId,
    checkAccess,
    endCircuits: (ids) => circuits.endOfTerminators(ids),
  })
  const { pool } = terminators
  const circuits = circuitsConcern({ ...core, ...owners, db: changeLog.db, pool, checkAccess, checkDial })
  const tunnel = tunnelConcern({
    ...core,
    ...owners,
    ...access,
    identity: identity.calls,
    terminators,
    circuits,
  })
  const opened = new AsyncDisposableStack()
  opened.use(terminators)
  opened.use(circuits)
  opened.use(access) // disposed before the others, which it calls
  opened.use(model)
  access.onSessionsEnded(tunnel.endOfSessions)
  access.onSessionsEnded(circuits.endOfSessions)
  return {
    concerns: [access, model, terminators, circuits, tunnel],
    circuits,
    terminators,
    model,
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  }
}

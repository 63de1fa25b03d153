import { disposeAll } from '@overlay/process/async'
import { type AccessDeps, accessConcern } from '../access/access.js'
import type { Circuits } from '../circuits/circuits.js'
import { circuitsConcern } from '../circuits/circuits-concern.js'
import type { ServiceDirectory } from '../terminators/service-directory.js'
import { type TerminatorDeps, type Terminators, terminatorsConcern } from '../terminators/terminators.js'
import { type TunnelOptions, tunnelConcern } from '../tunnel/tunnel.js'
import type { ControlCore } from './control.js'
import type { Concern } from './handlers.js'

/** The services that the concerns call and follow, and what they use of this one. */
export interface ControlOwners
  extends Pick<AccessDeps, 'heads' | 'policyHead'>,
    Pick<TerminatorDeps, 'deleteRouter'>,
    Pick<TunnelOptions, 'createSession'> {
  readonly identity: AccessDeps['identity'] & { readonly calls: TunnelOptions['identity'] }
  readonly policy: TunnelOptions['policy'] & { readonly calls: AccessDeps['policy'] }
  readonly grantWatch: AccessDeps['grantWatch'] & TunnelOptions['grantWatch']
  readonly services: ServiceDirectory
}

export interface Traffic extends AsyncDisposable {
  readonly concerns: readonly Concern[]
  readonly circuits: Circuits
  readonly terminators: Pick<Terminators, 'written'>
}

/** API sessions, terminators, circuits and tunnels of routers. */
export async function openTraffic(core: ControlCore, owners: ControlOwners): Promise<Traffic> {
  const { controllerId, changeLog } = core
  const { identity, policy } = owners
  const access = await accessConcern({ ...core, ...owners, policy: policy.calls })
  const { checkAccess } = access
  const terminators = terminatorsConcern({
    ...core,
    ...owners,
    replicaId: controllerId,
    checkAccess,
    circuits: { endOfTerminators: (ids) => circuits.endOfTerminators(ids) },
  })
  const { pool } = terminators
  const circuits = circuitsConcern({ ...core, ...owners, db: changeLog.db, pool, checkAccess })
  const tunnel = tunnelConcern({
    ...core,
    ...owners,
    ...access,
    db: changeLog.db,
    identity: identity.calls,
    terminators,
    circuits,
  })
  access.onSessionsEnded(terminators.endOfSessions)
  access.onSessionsEnded(circuits.endOfSessions)
  return {
    concerns: [access, terminators, circuits, tunnel],
    circuits,
    terminators,
    [Symbol.asyncDispose]: () => disposeAll(access, circuits, terminators),
  }
}

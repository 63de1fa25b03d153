import { type AccessDeps, accessConcern } from '../access/access.js'
import type { Circuits } from '../circuits/circuits.js'
import { circuitsConcern } from '../circuits/circuits-concern.js'
import type { ServiceDirectory } from '../terminators/service-directory.js'
import { type TerminatorDeps, type Terminators, terminatorsConcern } from '../terminators/terminators.js'
import type { ControlCore } from './control.js'
import type { Concern } from './handlers.js'

/** The services that the concerns call and follow, and what they use of this one. */
export interface ControlOwners
  extends Pick<AccessDeps, 'identity' | 'policy' | 'heads'>,
    Pick<TerminatorDeps, 'deleteRouter'> {
  readonly services: Pick<ServiceDirectory, 'find'>
}

export interface Traffic extends AsyncDisposable {
  readonly concerns: readonly Concern[]
  readonly circuits: Circuits
  /** For administrators who write terminators. */
  readonly terminators: Pick<Terminators, 'changeLog'>
}

/** API sessions, terminators and circuits of routers. */
export async function openTraffic(core: ControlCore, owners: ControlOwners): Promise<Traffic> {
  const { controllerId, changeLog } = core
  const access = await accessConcern({ ...core, ...owners })
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
  access.onSessionsEnded(terminators.endOfSessions)
  access.onSessionsEnded(circuits.endOfSessions)
  return {
    concerns: [access, terminators, circuits],
    circuits,
    terminators,
    async [Symbol.asyncDispose]() {
      await access[Symbol.asyncDispose]()
      await circuits[Symbol.asyncDispose]()
      await terminators[Symbol.asyncDispose]()
    },
  }
}

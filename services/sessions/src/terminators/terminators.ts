import { terminator } from '@overlay/model'
import { disposeAll } from '@overlay/process/async'
import type { ChangeLog, RowChange } from '@overlay/store/change-log'
import type { Logger } from 'pino'
import type { CheckAccess } from '../access/router-access.js'
import type { Circuits } from '../circuits/circuits.js'
import type { FabricEvents } from '../control/fabric-events.js'
import type { Concern } from '../control/handlers.js'
import type { RouterMessages } from '../control/router-channel.js'
import type { RouterPresence } from '../control/router-presence.js'
import { openCosts } from '../domain/terminator-costs.js'
import type { NewTerminator } from '../store/router-terminator.js'
import { changeHandlers } from './change-handlers.js'
import { terminatorCreator } from './create-batch.js'
import { createHandlers } from './create-handlers.js'
import { endWithSessions } from './ended-sessions.js'
import { terminatorEvents } from './events.js'
import { flushCosts } from './flush-costs.js'
import { terminatorPool } from './pool.js'
import { quiesceHandlers } from './quiesce.js'
import { invalidRemover, type TerminatorRemoval, terminatorRemover } from './remove-batch.js'
import type { ServiceDirectory } from './service-directory.js'
import type { TerminatorPool } from './terminator-pool.js'
import { type TerminatorUpdate, terminatorUpdater } from './update-batch.js'
import { openValidation } from './validation.js'

export interface TerminatorDeps {
  readonly changeLog: Pick<ChangeLog, 'db' | 'write'>
  /** Controller id of this replica. */
  readonly replicaId: string
  readonly presence: Pick<RouterPresence, 'isOnline' | 'replicas'>
  readonly messages: Pick<RouterMessages, 'send'>
  readonly events: FabricEvents
  readonly services: Pick<ServiceDirectory, 'find'>
  readonly checkAccess: CheckAccess
  readonly circuits: Pick<Circuits, 'endOfTerminators'>
  /** Deletes a router, as an administrator does. */
  readonly deleteRouter: (routerId: string) => Promise<void>
  readonly log: Logger
}

export interface Terminators extends Concern, AsyncDisposable {
  readonly pool: TerminatorPool
  /** To be called with the changes of each write, also of others: validates new terminators, and publishes events. */
  written(changes: readonly RowChange[]): void
  /** Throws AccessRefused. */
  create(terminator: NewTerminator): Promise<void>
  update(update: TerminatorUpdate): Promise<void>
  /** Returns the ids of terminators of other routers, which stay. */
  remove(removal: TerminatorRemoval): Promise<readonly string[]>
  /** Deletes the terminators of sessions that have ended, and ends their circuits. */
  endOfSessions(sessionIds: readonly string[]): Promise<void>
}

/** The terminators that routers create, and what becomes of them. */
export function terminatorsConcern(deps: TerminatorDeps): Terminators {
  const { replicaId, presence, messages, services, checkAccess, circuits, deleteRouter, log } = deps
  const { db } = deps.changeLog
  const costs = openCosts()
  const publish = terminatorEvents({ ...deps, db, costOf: costs.costOf })
  const writes = { changeLog: deps.changeLog }
  const [create, update, remove] = [
    terminatorCreator(writes),
    terminatorUpdater(writes),
    terminatorRemover({ ...writes, circuits }),
  ]
  const validation = openValidation({ db, messages, removeInvalid: invalidRemover(writes), log })
  const sessions = endWithSessions({ ...writes, circuits, log })
  const flushing = flushCosts({ db, replicaId, replicas: presence.replicas, costs, log })
  return {
    handlers: [
      ...createHandlers({ checkAccess, services, create, validation }),
      ...changeHandlers({ checkAccess, update, remove }),
      ...quiesceHandlers({ ...writes, deleteRouter }),
      validation.handler,
    ],
    connected: validation.validateRouter,
    pool: terminatorPool({ db, replicaId, services, costs, update, remove }),
    written(all) {
      const changes = all.filter(({ kind }) => kind === terminator.kind)
      for (const { id, before } of changes) if (before === null) validation.validateSoon(id)
      if (changes.some(mayGrant)) void sessions.endWithoutPlace()
      publish(changes)
    },
    create,
    update,
    remove,
    endOfSessions: sessions.endOf,
    [Symbol.asyncDispose]: () => disposeAll(validation, sessions, flushing),
  }
}

/** A change or deletion of a terminator by which its router may have created others. */
const mayGrant = ({ before }: RowChange): boolean =>
  before !== null && 'isSystem' in before && before.isSystem === false

import { terminator } from '@overlay/model'
import type { ChangeLog, FabricEvents, RowChange } from '@overlay/store/change-log'
import type { Logger } from 'pino'
import type { Concern } from '../channel/handlers.js'
import type { RouterMessages } from '../channel/router-channel.js'
import type { CheckAccess } from '../domain/router-access.js'
import { openCosts } from '../domain/terminator-costs.js'
import type { RouterPresence } from '../routers/router-presence.js'
import type { NewTerminator } from '../store/router-terminator.js'
import { changeHandlers } from './change-handlers.js'
import { createHandlers } from './create-handlers.js'
import { type EndCircuits, openTerminatorCreator } from './create-terminators.js'
import { endWithSessions } from './end-with-sessions.js'
import { flushCosts } from './flush-costs.js'
import { quiesceHandlers } from './quiesce-handlers.js'
import { openInvalidRemover, openTerminatorRemover, type TerminatorRemoval } from './remove-terminators.js'
import type { ServiceDirectory } from './service-directory.js'
import { terminatorEvents } from './terminator-events.js'
import { openTerminatorPool, type TerminatorPool } from './terminator-pool.js'
import { openTerminatorUpdater, type TerminatorUpdate } from './update-terminators.js'
import { openValidation } from './validate-terminators.js'

export interface TerminatorDeps {
  readonly changeLog: Pick<ChangeLog, 'db' | 'write'>
  /** Controller id of this replica. */
  readonly replicaId: string
  readonly presence: Pick<RouterPresence, 'isOnline' | 'of' | 'replicas'>
  readonly messages: Pick<RouterMessages, 'send'>
  readonly events: FabricEvents
  readonly services: Pick<ServiceDirectory, 'find'>
  readonly checkAccess: CheckAccess
  readonly endCircuits: EndCircuits
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
  const { replicaId, presence, messages, services, checkAccess, endCircuits, deleteRouter, log } = deps
  const { db } = deps.changeLog
  const costs = openCosts()
  const publish = terminatorEvents({ ...deps, db, costOf: costs.costOf })
  const writes = { changeLog: deps.changeLog }
  const [create, update, remove] = [
    openTerminatorCreator(writes),
    openTerminatorUpdater(writes),
    openTerminatorRemover({ ...writes, endCircuits }),
  ]
  const opened = new AsyncDisposableStack()
  const validation = opened.use(
    openValidation({ db, messages, presence, removeInvalid: openInvalidRemover(writes), log }),
  )
  const sessions = opened.use(endWithSessions({ ...writes, endCircuits, log }))
  opened.use(flushCosts({ db, replicaId, replicas: presence.replicas, costs, log }))
  return {
    handlers: [
      ...createHandlers({ checkAccess, services, create, validation }),
      ...changeHandlers({ checkAccess, update, remove }),
      ...quiesceHandlers({ ...writes, deleteRouter }),
      validation.handler,
    ],
    connected: validation.validateRouter,
    pool: openTerminatorPool({ db, replicaId, services, costs, update, remove }),
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
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  }
}

/** A change or deletion of a terminator by which its router may have created others. */
const mayGrant = ({ before }: RowChange): boolean =>
  before !== null && 'isSystem' in before && before.isSystem === false

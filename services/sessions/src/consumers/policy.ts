import { type Check, copies, references } from '@overlay/maintenance'
import { service } from '@overlay/model'
import type { Change } from '@overlay/rpc'
import { type ConsumerDefinition, deletedIds, type Effects, type Source } from '@overlay/store/change-log'
import { payloadDecoder } from '@overlay/store/kind-store'
import sql from 'sql-template-tag'
import { everything, policyKinds, policyRevocations, unknownPolicyRevocations } from '../domain/revocation.js'
import { ENDED_AT_ONCE } from '../limits.js'
import {
  copyServiceNames,
  correctServiceNames,
  deleteAllServiceNames,
  deleteServiceNames,
  type ServiceName,
} from '../store/known-service.js'
import { recordRevocations } from '../store/revocation.js'
import { endSessions } from '../store/session.js'
import { endTerminators } from '../store/terminator.js'
import { type AccessCheckDeps, accessCheck } from '../sweep/check-access.js'
import { changedRow, noteRevocations, type RevocationListener } from './revoked.js'

/** Terminators name services. */
export const policyConsumer = (source: Source, listener: RevocationListener): ConsumerDefinition => ({
  source,
  effects: policyEffects(listener),
  recordsDeletionsOf: ['services'],
})

/**
 * A session ends with its service, and when a policy or posture revokes it. A terminator ends with its
 * service; after missed changes, in the sweep.
 */
export const policyEffects = (listener: RevocationListener): Effects => ({
  kinds: policyKinds,

  async apply(tx, changes, upto) {
    const services = changes.filter(({ kind }) => kind === service.kind)
    const deleted = deletedIds(changes, service.kind)
    const which = sql`service_id = any(${deleted})`
    const hasDeleted = deleted.length > 0
    const sessions = hasDeleted ? await endSessions(tx, which, ENDED_AT_ONCE) : []
    const terminators = hasDeleted ? await endTerminators(tx, which) : []
    await copyServiceNames(tx, services.map(serviceName))
    const hasMore = sessions.length === ENDED_AT_ONCE
    const revocations = changes.flatMap((change) => policyRevocations(changedRow(change), hasMore))
    noteRevocations(listener, 'policy', upto, revocations)
    await recordRevocations(tx, 'policy', upto, revocations)
    return [...sessions, ...terminators]
  },

  // The sweep asks policy about the sessions.
  async unknown(tx, change, upto) {
    const revocations = unknownPolicyRevocations(changedRow(change))
    noteRevocations(listener, 'policy', upto, revocations)
    await recordRevocations(tx, 'policy', upto, revocations)
    return []
  },

  async reload(tx, rows, upto) {
    listener.revoked?.('policy', upto)
    await deleteAllServiceNames(tx)
    for await (const services of rows.pages(service.kind))
      await copyServiceNames(tx, services.map(serviceName))
    await recordRevocations(tx, 'policy', upto, [everything(upto.number)])
    return []
  },

  committed: listener.wake,
})

const decodeService = payloadDecoder(service)

const serviceName = (change: Change): ServiceName => ({ id: change.id, name: decodeService(change)?.name })

/** The sessions, terminators and copied names of services, and the access of sessions. */
export const policyChecks = (source: Source, deps: AccessCheckDeps): readonly Check[] => [
  references(deps, {
    what: 'session',
    from: sql`select id, service_id as ref from session`,
    to: ['services'],
    repair: (tx, missing) => endSessions(tx, sql`service_id = any(${missing})`),
  }),
  accessCheck(deps),
  references(deps, {
    what: 'terminator',
    from: sql`select id, service_id as ref from terminator`,
    to: ['services'],
    repair: (tx, missing) => endTerminators(tx, sql`service_id = any(${missing})`),
  }),
  copies(deps, {
    source,
    kinds: ['services'],
    apply: (tx, changes) => correctServiceNames(tx, changes.map(serviceName)),
  }),
  references(deps, {
    what: 'name of service',
    from: sql`select id, id as ref from known_service`,
    to: ['services'],
    repair: deleteServiceNames,
  }),
]

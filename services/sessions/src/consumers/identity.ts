import { type Check, type CheckDeps, references } from '@overlay/maintenance'
import { identity } from '@overlay/model'
import type { Change } from '@overlay/rpc'
import {
  type ConsumerDefinition,
  deletedIds,
  type Effects,
  isDeleted,
  type Source,
} from '@overlay/store/change-log'
import { payloadDecoder } from '@overlay/store/kind-store'
import sql from 'sql-template-tag'
import { everything, identityRevocation } from '../domain/revocation.js'
import { ENDED_AT_ONCE } from '../limits.js'
import { deleteConnections } from '../store/identity-connection.js'
import { recordRevocations } from '../store/revocation.js'
import { endSessions } from '../store/session.js'
import { changedRow, noteRevocations, type RevocationListener } from './revoked.js'

export const identityConsumer = (source: Source, listener: RevocationListener): ConsumerDefinition => ({
  source,
  recordsDeletionsOf: [identity.kind],
  effects: identityEffects(listener),
})

/** A session ends with its API session and its identity, and when the identity loses the service. */
export const identityEffects = (listener: RevocationListener): Effects => ({
  kinds: ['identities', 'api-sessions'],
  concerns: mayEndSessions,

  async apply(tx, changes, upto) {
    const [apiSessions, identities] = [deletedIds(changes, 'api-sessions'), deletedIds(changes, 'identities')]
    const which = sql`api_session_id = any(${apiSessions}) or identity_id = any(${identities})`
    const hasDeleted = apiSessions.length + identities.length > 0
    const ended = hasDeleted ? await endSessions(tx, which, ENDED_AT_ONCE) : []
    const hasMore = ended.length === ENDED_AT_ONCE
    if (identities.length > 0) await deleteConnections(tx, sql`identity_id = any(${identities})`)
    const revocations = changes
      .filter(mayEndSessions)
      .map((change) => identityRevocation(changedRow(change), hasMore))
    noteRevocations(listener, 'identity', upto, revocations)
    await recordRevocations(tx, 'identity', upto, revocations)
    return ended
  },

  // The sweep asks policy, which refuses identities that it does not know.
  async unknown(tx, change, upto) {
    const revocation = identityRevocation({ ...changedRow(change), isDeleted: false }, false)
    noteRevocations(listener, 'identity', upto, [revocation])
    await recordRevocations(tx, 'identity', upto, [revocation])
    return []
  },

  async reload(tx, rows, upto) {
    await deleteConnections(tx, sql`identity_id not in (${rows.ids(identity.kind)})`)
    listener.revoked?.('identity', upto)
    await recordRevocations(tx, 'identity', upto, [everything(upto.number)])
    return []
  },

  committed: listener.wake,
})

interface Extra {
  readonly isNew: boolean
  /** Only what a client reports of itself has changed. */
  readonly isReport: boolean
}

const decodeIdentity = payloadDecoder<typeof identity, Extra>(identity)

/** Every deletion, and identities that may have lost access. Nothing depends on a new identity. */
function mayEndSessions(change: Change): boolean {
  if (isDeleted(change)) return true
  if (change.kind !== 'identities') return false
  const row = decodeIdentity(change)
  return !(row?.isNew || row?.isReport)
}

/** The sessions of entities of identity. */
export const identityChecks = (deps: CheckDeps): readonly Check[] => [
  references(deps, {
    what: 'session',
    from: sql`select id, api_session_id as ref from session`,
    to: ['api-sessions'],
    repair: (tx, missing) => endSessions(tx, sql`api_session_id = any(${missing})`),
  }),
  references(deps, {
    what: 'session',
    from: sql`select id, identity_id as ref from session`,
    to: ['identities'],
    repair: (tx, missing) => endSessions(tx, sql`identity_id = any(${missing})`),
  }),
]

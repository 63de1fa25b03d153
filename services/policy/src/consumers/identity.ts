import { type Check, copies, references } from '@overlay/maintenance'
import { apiSession } from '@overlay/model'
import { pushAll } from '@overlay/process/async'
import type { Change } from '@overlay/rpc'
import {
  type ConsumerDefinition,
  deletedIds,
  type Effects,
  isDeleted,
  type LoadedRows,
  type RowChange,
  type Source,
} from '@overlay/store/change-log'
import { deletedSince, type Names, payloadDecoder } from '@overlay/store/kind-store'
import type { Tx } from '@overlay/store/postgres'
import sql, { raw } from 'sql-template-tag'
import { withMfa } from '../domain/posture/posture-data.js'
import { changePosture, deletePosture, eachPostureData, postureDataOfAll } from '../store/posture-data.js'
import { dropRoles, idsInRoles } from '../store/roles.js'
import { deleteServiceConfigs } from '../store/service-config.js'
import { deleteUpdates } from '../store/service-updates.js'
import { type CheckDeps, roleReferences } from './checks.js'

/**
 * Deletes what belongs to a deleted identity: its roles in policies, its own configs, its posture. Notes in the posture
 * of an identity which of its API sessions have passed the second factor.
 */
export const identityConsumer = (source: Source, names: Names): ConsumerDefinition => ({
  source,
  recordsDeletionsOf: ['identities'],
  effects: {
    kinds: ['identities', apiSession.kind],
    concerns: (change) =>
      change.kind === 'identities' ? isDeleted(change) : mfaStateIn(change) !== undefined,
    async apply(tx, changes) {
      const posture = await putMfaStates(tx, changes)
      return [...posture, ...(await deleteOwned(tx, deletedIds(changes, 'identities')))]
    },
    async reload(tx, rows) {
      const posture = await replaceMfaStates(tx, rows)
      const deleted = await deletedSince(tx, names, 'identities', rows, referencedIdentities)
      return [...posture, ...(await deleteOwned(tx, deleted))]
    },
  },
})

export function identityChecks(deps: CheckDeps): readonly Check[] {
  const mfaStates: Pick<Effects, 'kinds' | 'apply'> = { kinds: [apiSession.kind], apply: putMfaStates }
  return [
    copies(deps, { source: deps.sources.identity, ...mfaStates }),
    ...['posture_data', 'failed_request'].map((table) =>
      references(deps, {
        what: table.replace('_', ' '),
        from: sql`select distinct identity_id as id, identity_id as ref from ${raw(table)}`,
        to: ['identities'],
        repair: deletePosture,
      }),
    ),
    ...roleReferences(deps, 'identities'),
    // wire: an identity may have a config for a service that does not exist
    references(deps, {
      what: 'config',
      from: sql`select config_id as id, identity_id as ref from service_config`,
      to: ['identities'],
      repair: (tx, ids) => deleteServiceConfigs(tx, sql`identity_id = any(${ids})`),
    }),
    references(deps, {
      what: 'service-updates time',
      // the engine deletes them within seconds
      from: sql`
        select identity_id as id, identity_id as ref from service_update
         where changed_at < now() - interval '1 minute'`,
      to: ['identities'],
      repair: deleteUpdates,
    }),
  ]
}

const referencedIdentities = sql`
  select identity_id as id from service_config
   union select identity_id from posture_data
   union select identity_id from failed_request
   union select identity_id from service_update
   union ${idsInRoles('identities')}`

async function deleteOwned(tx: Tx, ids: readonly string[]): Promise<RowChange[]> {
  if (ids.length === 0) return []
  const roles = await dropRoles(tx, 'identities', ids)
  const configs = await deleteServiceConfigs(tx, sql`identity_id = any(${ids})`)
  const posture = await deletePosture(tx, ids)
  await deleteUpdates(tx, ids)
  return [...roles, ...configs, ...posture]
}

/** Whether an API session has passed the second factor. */
interface MfaState {
  readonly identityId: string
  /** null: it must pass it again. */
  readonly passedAt: string | null
}

const decodeApiSession = payloadDecoder(apiSession)

/** Undefined: the change is about something else. */
function mfaStateIn(change: Change): MfaState | undefined {
  if (change.kind !== apiSession.kind) return undefined
  const { identityId, mfaPassedAt } = decodeApiSession(change) ?? {}
  if (identityId === undefined || mfaPassedAt === undefined) return undefined
  return { identityId, passedAt: mfaPassedAt }
}

async function putMfaStates(tx: Tx, changes: readonly Change[]): Promise<RowChange[]> {
  const last = new Map<string, MfaState>()
  for (const change of changes) {
    const state = mfaStateIn(change)
    if (state) last.set(change.id, state)
  }
  const posture = await postureDataOfAll(
    tx,
    [...last.values()].map(({ identityId }) => identityId),
  )
  const rowChanges: RowChange[] = []
  for (const [apiSessionId, { identityId, passedAt }] of last) {
    const endpoint = posture.get(identityId)?.apiSessions[apiSessionId]
    if ((endpoint?.passedMfaAt ?? null) === passedAt) continue
    const { change } = await changePosture(tx, identityId, (data) => withMfa(data, apiSessionId, passedAt))
    rowChanges.push(change)
  }
  return rowChanges
}

/** After a load: API sessions that are not among its rows have not passed. */
async function replaceMfaStates(tx: Tx, rows: LoadedRows): Promise<RowChange[]> {
  const rowChanges: RowChange[] = []
  const passed = new Set<string>()
  for await (const page of rows.pages(apiSession.kind)) {
    const passing = page.filter((row) => mfaStateIn(row)?.passedAt)
    pushAll(rowChanges, await putMfaStates(tx, passing))
    for (const { id } of passing) passed.add(id)
  }
  for await (const { id: identityId, data } of eachPostureData(tx)) {
    for (const [id, { passedMfaAt }] of Object.entries(data.apiSessions)) {
      if (passedMfaAt === undefined || passed.has(id)) continue
      const { change } = await changePosture(tx, identityId, (data) => withMfa(data, id, null))
      rowChanges.push(change)
    }
  }
  return rowChanges
}

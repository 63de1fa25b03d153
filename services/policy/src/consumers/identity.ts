import type { Effects, RowChange } from '@overlay/platform/change-log'
import { deletedSince, type Names } from '@overlay/platform/kind-store'
import type { Tx } from '@overlay/platform/postgres'
import sql from 'sql-template-tag'
import { dropRoles, idsInRoles } from '../store/drop-role.js'
import { forgetPosture } from '../store/posture-data.js'
import { deleteServiceConfigs } from '../store/service-config.js'
import { forgetUpdates } from '../store/service-updates.js'
import { notePassed, notePassedAnew, PASSING, passedIn } from './passed-factors.js'
import { goneIn } from './removed-entities.js'

/**
 * An identity that is gone is named by no policy, has no configs of its own, and what it said is forgotten. A code that
 * was given in an API session is what its endpoint says.
 */
export const identityEffects = (names: Names): Effects => ({
  kinds: ['identities', PASSING],
  concerns: (change) =>
    change.kind === 'identities' ? change.json.length === 0 : passedIn(change) !== undefined,
  async apply(tx, changes) {
    const passed = await notePassed(tx, changes)
    return [...passed, ...(await forget(tx, goneIn(changes.filter(({ kind }) => kind === 'identities'))))]
  },
  async reload(tx, rows) {
    const own = await notePassedAnew(tx, rows)
    const gone = await deletedSince(tx, names, 'identities', rows, namedIdentities)
    return [...own, ...(await forget(tx, gone))]
  },
})

/** Whom our rows name. */
const namedIdentities = sql`
  select identity_id as id from service_config
   union select identity_id from posture_data
   union select identity_id from failed_request
   union select identity_id from service_update
   union ${idsInRoles('identities')}`

async function forget(tx: Tx, gone: readonly string[]): Promise<RowChange[]> {
  if (gone.length === 0) return []
  const roles = await dropRoles(tx, 'identities', gone)
  const configs = await deleteServiceConfigs(tx, sql`identity_id = any(${gone})`)
  const posture = await forgetPosture(tx, gone)
  await forgetUpdates(tx, gone)
  return [...roles, ...configs, ...posture]
}

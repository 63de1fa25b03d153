import type { RowOf, service } from '@overlay/model'
import type { Reading, Seams } from '@overlay/platform/kind-store'
import type { Tx } from '@overlay/platform/postgres'
import { Fault, invalid } from '@overlay/rpc'
import sql from 'sql-template-tag'
import { postureQueries } from '../domain/posture/queries.js'
import { permissionsOf, visibleIds } from '../domain/queries.js'
import type { State } from '../domain/state.js'
import { configsFor } from '../store/configs-of-services.js'
import { dropRoles } from '../store/drop-role.js'
import { deleteServiceConfigs } from '../store/service-config.js'

const strategies = ['smartrouting', 'weighted', 'random', 'sticky']

/** What services show depends on who looks, and so does which of them are there. */
export const serviceSeams = (state: State): Seams<typeof service> => ({
  scope({ identityId, isAdmin }) {
    return isAdmin ? sql`true` : sql`id = any(${visibleIds(state, { identityId, isAdmin })}::text[])`
  },

  async view(db, rows, { caller, perspective, shape }) {
    const queriesOf = postureQueries(state, caller)
    if (shape === 'linked')
      return rows.map(({ id }) => ({ permissions: null, config: null, postureQueries: queriesOf(id) }))
    const wanted = wantedTypes(caller.configTypes, perspective, shape)
    const configs = await configsFor(db, rows, caller.identityId, wanted)
    return rows.map(({ id }) => {
      const granted: string[] = permissionsOf(state, caller.identityId, id)
      const permissions = granted.length > 0 ? granted : ['Invalid'] // wire: never empty, never null
      const config = wanted.length === 0 && shape === 'detail' ? null : (configs.get(id) ?? {})
      const asked = queriesOf(id)
      return {
        permissions,
        config,
        postureQueries: asked.length > 0 ? asked : permissions.map(withoutChecks),
      }
    })
  },

  async writing(tx, next, _before, { isWritten }) {
    if (isWritten('configs')) await checkConfigs(tx, next.configs ?? [])
    const terminatorStrategy = next.terminatorStrategy || 'smartrouting'
    if (!strategies.includes(terminatorStrategy))
      throw new Fault('NOT_FOUND', `terminatorStrategy with name ${terminatorStrategy} not found`)
    return { terminatorStrategy }
  },

  async deleting(tx, { id }, { also }) {
    const roles = await dropRoles(tx, 'services', [id])
    const configs = await deleteServiceConfigs(tx, sql`service_id = ${id}`)
    for (const change of [...roles, ...configs]) also(change)
  },
})

/** wire: a detail shows what was asked for at login; the list may be asked for other types. */
function wantedTypes(
  ofSession: readonly string[],
  perspective: Reading['perspective'],
  shape: Reading['shape'],
): readonly string[] {
  return shape === 'list' && perspective?.hasConfigTypes ? perspective.configTypes : ofSession
}

/** wire: where no policy grants it, or no posture check exists at all, one element stands for each permission. */
const withoutChecks = (permission: string) => ({
  policyId: `dummy ${permission.toLowerCase()} policy: no posture checks defined`,
  policyType: permission,
  isPassing: true,
  postureQueries: [],
})

/** All exist, and are of different types. They are locked already. */
async function checkConfigs(tx: Tx, ids: NonNullable<RowOf<typeof service>['configs']>): Promise<void> {
  if (ids.length === 0) return
  const { rows } = await tx.query<{ id: string; name: string; type_id: string; type: string }>(sql`
    select c.id, c.name, t.id as type_id, t.name as type
      from config c join config_type t on t.id = c.config_type_id
     where c.id = any(${ids}) order by c.id`)
  const known = new Map(rows.map((row) => [row.id, row]))
  const missing = ids.find((id) => !known.has(id))
  if (missing !== undefined) throw new Fault('NOT_FOUND', `configs with id ${missing} not found`)
  const byType = new Map<string, string>()
  for (const { name, type_id, type } of rows) {
    const other = byType.get(type_id)
    if (other !== undefined)
      throw invalid(
        'configs',
        `duplicate configs named ${other} and ${name} found for config type ${type}. Only one config of a given typed is allowed per service `,
        ids,
      )
    byType.set(type_id, name)
  }
}

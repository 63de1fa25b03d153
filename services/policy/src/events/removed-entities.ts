import type { Effects, RowChange, Tx } from '@overlay/platform'
import type { Change } from '@overlay/rpc'
import sql from 'sql-template-tag'
import { dropRole } from '../store/drop-role.js'
import { forgetPosture } from '../store/posture-data.js'
import { deleteServiceConfigs } from '../store/service-config.js'

/** An identity that is gone is named by no policy, has no configs of its own, and what it said is forgotten. */
export const identityEffects: Effects = {
  kinds: ['identities'],
  concerns: ({ json }) => json.length === 0,
  async apply(tx, changes) {
    const gone = goneIn(changes)
    if (gone.length === 0) return []
    const configs = await deleteServiceConfigs(tx, sql`identity_id = any(${gone})`)
    const posture = await forgetPosture(tx, gone)
    return [...(await dropAll(tx, 'identities', gone)), ...configs, ...posture]
  },
  reload: nothing,
}

/** Ids are not given twice, so a name that is left over selects nobody; one that is too new to be loaded must stay. */
async function nothing(): Promise<RowChange[]> {
  return []
}

export const goneIn = (changes: readonly Change[]): string[] =>
  changes.filter(({ json }) => json.length === 0).map(({ id }) => id)

export async function dropAll(tx: Tx, kind: string, ids: readonly string[]): Promise<RowChange[]> {
  const changes: RowChange[] = []
  for (const id of ids) changes.push(...(await dropRole(tx, kind, id)))
  return changes
}

import { type Check, copies, references } from '@overlay/maintenance'
import { edgeRouter } from '@overlay/model'
import { pushAll } from '@overlay/process/async'
import type { Change } from '@overlay/rpc'
import {
  type ConsumerDefinition,
  deletedIds,
  type Effects,
  type RowChange,
  type Source,
} from '@overlay/store/change-log'
import { deletedSince, type Names, payloadDecoder } from '@overlay/store/kind-store'
import type { Tx } from '@overlay/store/postgres'
import sql from 'sql-template-tag'
import { dropRoles, idsInRoles } from '../store/roles.js'
import { deleteSystemPolicies, lockRouterPolicies, putSystemPolicy } from '../store/system-policy.js'
import { type CheckDeps, roleReferences } from './checks.js'

/** Keeps the system policies of tunneling routers, and removes deleted routers from all policies. */
export const sessionsConsumer = (source: Source, names: Names): ConsumerDefinition => ({
  source,
  recordsDeletionsOf: [edgeRouter.kind],
  effects: routerEffects(names),
})

export function sessionsChecks(deps: CheckDeps): readonly Check[] {
  const { names, sources } = deps
  return [
    copies(deps, { source: sources.sessions, ...routerEffects(names) }),
    references(deps, {
      what: 'system edgeRouterPolicy',
      from: sql`select id, id as ref from edge_router_policy where is_system`,
      to: [edgeRouter.kind],
      repair: (tx, ids) => deleteSystemPolicies(tx, sql`id = any(${ids})`),
    }),
    ...roleReferences(deps, edgeRouter.kind),
  ]
}

export const routerEffects = (names: Names): Effects => ({
  kinds: [edgeRouter.kind],

  async apply(tx, changes) {
    const deleted = deletedIds(changes, edgeRouter.kind)
    await lockRouterPolicies(
      tx,
      changes.map(({ id }) => id),
      deleted,
    )
    return [...(await setSystemPolicies(tx, changes)), ...(await dropRoles(tx, edgeRouter.kind, deleted))]
  },

  async reload(tx, rows) {
    const rowChanges = await deleteSystemPolicies(tx, sql`id not in (${rows.ids(edgeRouter.kind)})`)
    for await (const page of rows.pages(edgeRouter.kind))
      pushAll(rowChanges, await setSystemPolicies(tx, page))
    const deleted = await deletedSince(tx, names, edgeRouter.kind, rows, idsInRoles(edgeRouter.kind))
    return [...rowChanges, ...(await dropRoles(tx, edgeRouter.kind, deleted))]
  },
})

const decodeRouter = payloadDecoder(edgeRouter)

async function setSystemPolicies(tx: Tx, routers: readonly Change[]): Promise<RowChange[]> {
  const rowChanges: RowChange[] = []
  for (const router of routers) {
    const isTunneler = decodeRouter(router)?.isTunnelerEnabled ?? false
    const { id } = router
    pushAll(
      rowChanges,
      isTunneler ? await putSystemPolicy(tx, id) : await deleteSystemPolicies(tx, sql`id = ${id}`),
    )
  }
  return rowChanges
}

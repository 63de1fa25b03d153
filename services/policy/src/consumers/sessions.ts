import { edgeRouterPolicy } from '@overlay/model'
import { pushAll } from '@overlay/platform/async'
import type { Effects, RowChange } from '@overlay/platform/change-log'
import { changeOf, columnsOf, deletedSince, type Names, rowOf } from '@overlay/platform/kind-store'
import type { Tx } from '@overlay/platform/postgres'
import type { Change } from '@overlay/rpc'
import sql, { type Sql } from 'sql-template-tag'
import { dropRoles, idsInRoles } from '../store/drop-role.js'
import { goneIn } from './removed-entities.js'

/** A tunneling router reaches itself by a policy of its own; a router that is gone is named by no policy. */
export const routerEffects = (names: Names): Effects => ({
  kinds: ['edge-routers'],

  async apply(tx, changes) {
    const own: RowChange[] = []
    await lockPolicies(tx, changes)
    for (const { id, json } of changes)
      pushAll(own, isTunneler(json) ? await keep(tx, id) : await removeSystemPolicies(tx, sql`id = ${id}`))
    return [...own, ...(await dropRoles(tx, 'edge-routers', goneIn(changes)))]
  },

  async reload(tx, rows) {
    const own = await removeSystemPolicies(tx, sql`id not in (${rows.ids('edge-routers')})`)
    for await (const page of rows.pages('edge-routers'))
      for (const { id, json } of page)
        pushAll(own, isTunneler(json) ? await keep(tx, id) : await removeSystemPolicies(tx, sql`id = ${id}`))
    const gone = await deletedSince(tx, names, 'edge-routers', rows, idsInRoles('edge-routers'))
    return [...own, ...(await dropRoles(tx, 'edge-routers', gone))]
  },
})

const isTunneler = (json: Change['json']): boolean =>
  json.length > 0 &&
  (JSON.parse(Buffer.from(json).toString()) as { readonly isTunnelerEnabled: boolean }).isTunnelerEnabled

/** All that may change, in the order of ids, before any does. */
async function lockPolicies(tx: Tx, changes: readonly Change[]): Promise<void> {
  const [ids, roles] = [changes.map(({ id }) => id), goneIn(changes).map((id) => `@${id}`)]
  await tx.query(sql`
    select from edge_router_policy
     where is_system and id = any(${ids}) or edge_router_roles && ${roles}::text[] order by id for update`)
}

const columns = columnsOf(edgeRouterPolicy)

/** wire: it has the id of the router. */
async function keep(tx: Tx, id: string): Promise<RowChange[]> {
  const roles = [`@${id}`]
  const { rows } = await tx.query(sql`
    insert into edge_router_policy (id, name, semantic, identity_roles, edge_router_roles, is_system)
    values (${id}, ${`edge-router-${id}-system`}, 'AnyOf', ${roles}, ${roles}, true)
        on conflict do nothing
 returning ${columns}`)
  if (rows.length === 0) return restore(tx, id, roles)
  return rows.map((row) => changeOf(edgeRouterPolicy, id, null, rowOf(edgeRouterPolicy, row)))
}

/** It is there; what it links is no matter of chance. */
async function restore(tx: Tx, id: string, roles: readonly string[]): Promise<RowChange[]> {
  const found = await tx.query(sql`
    select ${columns} from edge_router_policy
     where id = ${id} and is_system
       and (semantic, identity_roles, edge_router_roles) is distinct from ('AnyOf', ${roles}::text[], ${roles}::text[])
       for update`)
  const [before] = found.rows
  if (!before) return []
  const { rows } = await tx.query(sql`
    update edge_router_policy
       set semantic = 'AnyOf', identity_roles = ${roles}, edge_router_roles = ${roles}, updated_at = clock_timestamp()
     where id = ${id}
 returning ${columns}`)
  return rows.map((row) =>
    changeOf(edgeRouterPolicy, id, rowOf(edgeRouterPolicy, before), rowOf(edgeRouterPolicy, row)),
  )
}

export async function removeSystemPolicies(tx: Tx, which: Sql): Promise<RowChange[]> {
  const { rows } = await tx.query(sql`
    delete from edge_router_policy where is_system and ${which} returning ${columns}`)
  return rows.map((row) => changeOf(edgeRouterPolicy, String(row.id), rowOf(edgeRouterPolicy, row), null))
}

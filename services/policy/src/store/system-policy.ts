import { edgeRouterPolicy } from '@overlay/model'
import type { RowChange } from '@overlay/platform/change-log'
import { changeOf, columnsOf, rowOf } from '@overlay/platform/kind-store'
import type { Tx } from '@overlay/platform/postgres'
import sql, { type Sql } from 'sql-template-tag'

const columns = columnsOf(edgeRouterPolicy)

/** Locks, in the order of their ids, the system policies of these routers and all policies that name the deleted ones. */
export async function lockRouterPolicies(
  tx: Tx,
  routerIds: readonly string[],
  deletedIds: readonly string[],
): Promise<void> {
  const roles = deletedIds.map((id) => `@${id}`)
  await tx.query(sql`
    select from edge_router_policy
     where is_system and id = any(${routerIds}) or edge_router_roles && ${roles}::text[] order by id for update`)
}

/** Creates or repairs the policy by which a tunneling router reaches itself. wire: it has the id of the router. */
export async function putSystemPolicy(tx: Tx, routerId: string): Promise<RowChange[]> {
  const roles = [`@${routerId}`]
  const { rows } = await tx.query(sql`
    insert into edge_router_policy (id, name, semantic, identity_roles, edge_router_roles, is_system)
    values (${routerId}, ${`edge-router-${routerId}-system`}, 'AnyOf', ${roles}, ${roles}, true)
        on conflict do nothing
 returning ${columns}`)
  if (rows.length === 0) return repair(tx, routerId, roles)
  return rows.map((row) => changeOf(edgeRouterPolicy, routerId, null, rowOf(edgeRouterPolicy, row)))
}

async function repair(tx: Tx, id: string, roles: readonly string[]): Promise<RowChange[]> {
  const { rows: wrong } = await tx.query(sql`
    select ${columns} from edge_router_policy
     where id = ${id} and is_system
       and (semantic, identity_roles, edge_router_roles) is distinct from ('AnyOf', ${roles}::text[], ${roles}::text[])
       for update`)
  const [before] = wrong
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

export async function deleteSystemPolicies(tx: Tx, which: Sql): Promise<RowChange[]> {
  const { rows } = await tx.query(sql`
    delete from edge_router_policy where is_system and ${which} returning ${columns}`)
  return rows.map((row) => changeOf(edgeRouterPolicy, String(row.id), rowOf(edgeRouterPolicy, row), null))
}

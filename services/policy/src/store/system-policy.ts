import { edgeRouterPolicy } from '@overlay/model'
import type { RowChange } from '@overlay/store/change-log'
import { changeRow, deleteRows, insertRows } from '@overlay/store/kind-store'
import type { Tx } from '@overlay/store/postgres'
import sql, { type Sql } from 'sql-template-tag'

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

/** Creates or repairs the policy by which a tunneling router reaches itself. wire: the id of the policy is the id of the router. */
export async function putSystemPolicy(tx: Tx, routerId: string): Promise<RowChange[]> {
  const roles = [`@${routerId}`]
  const insert = sql`
    insert into edge_router_policy (id, name, semantic, identity_roles, edge_router_roles, is_system)
    values (${routerId}, ${`edge-router-${routerId}-system`}, 'AnyOf', ${roles}, ${roles}, true)
        on conflict do nothing`
  const inserted = await insertRows(tx, edgeRouterPolicy, insert)
  if (inserted.length > 0) return inserted
  const isWrong = sql`
    id = ${routerId} and is_system
    and (semantic, identity_roles, edge_router_roles) is distinct from ('AnyOf', ${roles}::text[], ${roles}::text[])`
  const sets = sql`semantic = 'AnyOf', identity_roles = ${roles}, edge_router_roles = ${roles}`
  const repaired = await changeRow(tx, edgeRouterPolicy, isWrong, sets)
  return repaired ? [repaired] : []
}

export const deleteSystemPolicies = (tx: Tx, which: Sql): Promise<RowChange[]> =>
  deleteRows(tx, edgeRouterPolicy, sql`is_system and ${which}`)

import type { Db } from '@overlay/store/postgres'
import sql from 'sql-template-tag'

/** Saves costs of a replica. Terminators that no longer exist are skipped. */
export async function saveCosts(
  db: Db,
  replicaId: string,
  costs: ReadonlyMap<string, number>,
): Promise<void> {
  const some = [...costs].filter(([, cost]) => cost > 0)
  const none = [...costs].filter(([, cost]) => cost === 0).map(([id]) => id)
  if (some.length > 0)
    await db.query(
      sql`
      insert into terminator_cost (terminator_id, replica_id, cost)
      select id, ${replicaId}, new_cost
        from unnest(${some.map(([id]) => id)}::text[], ${some.map(([, cost]) => cost)}::integer[]) as entry (id, new_cost)
       where exists (select from terminator where terminator.id = entry.id)
       order by id
          on conflict (terminator_id, replica_id) do update set cost = excluded.cost
       where terminator_cost.cost <> excluded.cost`,
      'save-costs',
    )
  if (none.length > 0)
    await db.query(
      sql`delete from terminator_cost where replica_id = ${replicaId} and terminator_id = any(${none})`,
      'delete-costs',
    )
}

/** The open circuits of each terminator that a replica has opened. Terminators without one are missing. */
export async function circuitsOfReplica(db: Db, replicaId: string): Promise<ReadonlyMap<string, number>> {
  const { rows } = await db.query<{ id: string; circuits: number }>(
    sql`
    select terminator_id as id, count(*)::integer as circuits
      from circuit where controller_id = ${replicaId} group by terminator_id`,
    'circuits-of-replica',
  )
  return new Map(rows.map(({ id, circuits }) => [id, circuits]))
}

/** Deletes the costs of replicas that have ended, and those of an earlier run of this one. */
export async function deleteCostsOf(
  db: Db,
  which: 'others' | 'one',
  replicaIds: readonly string[],
): Promise<void> {
  const ofThem = sql`replica_id = any(${replicaIds})`
  await db.query(sql`delete from terminator_cost where ${which === 'one' ? ofThem : sql`not (${ofThem})`}`)
}

/** Dynamic costs of terminators, of all replicas together. Terminators without a cost are missing. */
export async function costsOf(db: Db, ids: readonly string[]): Promise<ReadonlyMap<string, number>> {
  if (ids.length === 0) return new Map()
  const { rows } = await db.query<{ id: string; cost: number }>(
    sql`
    select terminator_id as id, least(sum(cost), 65535)::integer as cost
      from terminator_cost where terminator_id = any(${ids}) group by terminator_id`,
    'costs-of-terminators',
  )
  return new Map(rows.map(({ id, cost }) => [id, cost]))
}

/** The costs that one replica has saved, at most 10,000. */
export async function costsOfReplica(
  db: Db,
  replicaId: string,
): Promise<readonly { readonly terminatorId: string; readonly currentCost: number }[]> {
  const { rows } = await db.query<{ terminatorId: string; currentCost: number }>(sql`
    select terminator_id as "terminatorId", cost as "currentCost"
      from terminator_cost where replica_id = ${replicaId} order by terminator_id limit 10000`)
  return rows
}

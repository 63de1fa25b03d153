import type { Db } from '@overlay/platform/postgres'
import sql from 'sql-template-tag'

/** Circuits that have ended, of which a router may not know. */
export async function unroutesOf(
  db: Db,
  routerIds: readonly string[],
): Promise<ReadonlyMap<string, readonly string[]>> {
  const { rows } = await db.query<{ id: string; circuitIds: readonly string[] }>(
    sql`
    select router_id as id, array_agg(circuit_id) as "circuitIds" from unroute
     where router_id = any(${routerIds}) group by router_id`,
    'unroutes-of',
  )
  return new Map(rows.map(({ id, circuitIds }) => [id, circuitIds]))
}

/** Forgets what these routers have received, and what is too old to matter. */
export async function pruneUnroutes(
  db: Db,
  routerIds: readonly string[],
  receivedSeconds: number,
  keptSeconds: number,
): Promise<void> {
  await db.query(
    sql`
    delete from unroute
     where (router_id = any(${routerIds}) and ended_at < now() - make_interval(secs => ${receivedSeconds}))
        or ended_at < now() - make_interval(secs => ${keptSeconds})`,
    'prune-unroutes',
  )
}

import type { Db } from '@overlay/store/postgres'
import sql from 'sql-template-tag'

export interface UnroutePage {
  readonly routerId: string
  /** A circuit id; empty: from the first. */
  readonly after: string
}

/**
 * For each page, the next circuits that have ended and of which the router may not know, in the order of ids. The rows are
 * compared as pairs: a plan that expects few rows of a router would sort all of them for each page.
 */
export async function unroutesOf(
  db: Db,
  pages: readonly UnroutePage[],
  limit: number,
): Promise<readonly (readonly string[])[]> {
  const { rows } = await db.query<{ circuitIds: readonly string[] }>(
    sql`
    select array(select circuit_id
                   from (select router_id, circuit_id from unroute
                          where (router_id, circuit_id) > (router, after)
                          order by router_id, circuit_id limit ${limit}) as next
                  where router_id = router order by circuit_id) as "circuitIds"
      from unnest(${pages.map(({ routerId }) => routerId)}::text[], ${pages.map(({ after }) => after)}::text[])
           with ordinality as page (router, after, place)
     order by place`,
    'unroutes-of',
  )
  return rows.map(({ circuitIds }) => circuitIds)
}

/** Forgets some of what these routers have received, and of what is too old to matter. False: this was all. */
export async function pruneUnroutes(
  db: Db,
  routerIds: readonly string[],
  receivedSeconds: number,
  keptSeconds: number,
  limit = 20_000,
): Promise<boolean> {
  const { rowCount } = await db.query(
    sql`
    delete from unroute
     where ctid = any(array(select received.at
                              from unnest(${routerIds}::text[]) as router
                             cross join lateral (
                                   select ctid as at from unroute
                                    where router_id = router
                                      and ended_at < now() - make_interval(secs => ${receivedSeconds})
                                    limit ${limit} for update skip locked) as received
                             limit ${limit}))
        or ctid = any(array(select ctid from unroute where ended_at < now() - make_interval(secs => ${keptSeconds})
                             limit ${limit} for update skip locked))`,
    'prune-unroutes',
  )
  return rowCount !== null && rowCount >= limit
}

import type { Db } from '@overlay/store/postgres'
import sql, { type Sql } from 'sql-template-tag'
import { SETTLED_SECONDS } from '../limits.js'
import { beginsOrEndsAt, CIRCUIT, type Circuit } from './circuit.js'

/** The distinct values of an indexed expression of circuits, with one look-up for each. */
const distinct = (value: Sql): Sql => sql`
  (with recursive found as (
        (select ${value} as value from circuit order by ${value} limit 1)
        union all
        select (select ${value} from circuit where ${value} > found.value order by ${value} limit 1)
          from found where found.value is not null)
   select value from found where value is not null)`

/** The routers where circuits begin or end. */
export async function endRouters(db: Db): Promise<readonly string[]> {
  const { rows } = await db.query<{ value: string }>(
    sql`
    select value from ${distinct(sql`router_ids[1]`)} as begins
     union
    select value from ${distinct(sql`router_ids[cardinality(router_ids)]`)} as ends`,
    'end-routers',
  )
  return rows.map(({ value }) => value)
}

export interface Verification {
  /** Controllers whose circuits are verified rarely: routers report their ends. */
  readonly liveControllerIds: readonly string[]
  readonly liveSeconds: number
  readonly deadSeconds: number
  readonly limit: number
}

/** Takes circuits that were verified longest ago, if their time has come. Another replica does not take them as well. */
export async function claimUnverified(
  db: Db,
  { liveControllerIds, liveSeconds, deadSeconds, limit }: Verification,
): Promise<readonly Circuit[]> {
  const { rows } = await db.query<Circuit>(
    sql`
    with due as materialized (
         select oldest.id
           from ${distinct(sql`controller_id`)} as controller
          cross join lateral (
                select id from circuit
                 where controller_id = controller.value
                   and verified_at < now() - make_interval(secs =>
                       case when controller.value = any(${liveControllerIds}) then ${liveSeconds}::float8
                            else ${deadSeconds}::float8 end)
                   and created_at < now() - make_interval(secs => ${SETTLED_SECONDS})
                 order by verified_at limit ${limit}) as oldest
          limit ${limit}),
         taken as materialized (
         select id from circuit where id in (select id from due) for update skip locked)
    update circuit set verified_at = now() where id in (select id from taken) returning ${CIRCUIT}`,
    'claim-unverified',
  )
  return rows
}

/** The circuits that begin or end at a router are verified next. */
export async function verifyNext(db: Db, routerId: string): Promise<void> {
  await db.query(
    sql`update circuit set verified_at = '-infinity' where ${beginsOrEndsAt(sql`${routerId}`)}`,
    'verify-next',
  )
}

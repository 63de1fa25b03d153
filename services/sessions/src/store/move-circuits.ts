import type { Db } from '@overlay/store/postgres'
import sql, { type Sql } from 'sql-template-tag'
import { MOVING_SECONDS } from '../limits.js'
import { CIRCUIT, type Circuit } from './circuit.js'

type Version = Pick<Circuit, 'id' | 'version'>

const versionsOf = (circuits: readonly Version[]): Sql => sql`
  (select * from unnest(${circuits.map(({ id }) => id)}::text[], ${circuits.map(({ version }) => version)}::int[])
             as list (id, version))`

/** Ids of circuits that use a link. */
export const idsOverLink = (db: Db, linkId: string): Promise<readonly string[]> =>
  idsOf(db, sql`link_ids @> array[${linkId}] and cardinality(router_ids) > 1`, 'circuits-over-link')

/** Ids of circuits over a router, except those with no other router. */
export const idsOverRouter = (db: Db, routerId: string): Promise<readonly string[]> =>
  idsOf(db, sql`router_ids @> array[${routerId}] and cardinality(router_ids) > 1`, 'circuits-over-router')

/** Ids of circuits whose move was not completed. */
export const idsLeftMoving = (db: Db): Promise<readonly string[]> =>
  idsOf(db, sql`moving_until < now()`, 'circuits-left-moving')

async function idsOf(db: Db, which: Sql, name: string): Promise<readonly string[]> {
  const { rows } = await db.query<{ id: string }>(sql`select id from circuit where ${which}`, name)
  return rows.map(({ id }) => id)
}

/**
 * Takes circuits that no other replica is moving. Those that one moves already get a new version, so that this replica
 * moves them once more.
 */
export async function claimMoves(db: Db, ids: readonly string[]): Promise<readonly Circuit[]> {
  const { rows } = await db.query<Circuit & { isMoving: boolean }>(
    sql`
    with before as materialized (
         select id, coalesce(moving_until > now(), false) as is_moving from circuit
          where id = any(${ids}) order by id for update)
    update circuit
       set version = version + 1,
           moving_until = case when is_moving then moving_until
                               else now() + make_interval(secs => ${MOVING_SECONDS}) end
      from before where before.id = circuit.id
    returning ${CIRCUIT}, is_moving as "isMoving"`,
    'claim-moves',
  )
  return rows.filter(({ isMoving }) => !isMoving).map(({ isMoving: _, ...circuit }) => circuit)
}

/** The current versions of circuits that this replica moves. Those that have ended are missing. */
export async function continueMoves(db: Db, ids: readonly string[]): Promise<readonly Circuit[]> {
  const { rows } = await db.query<Circuit>(
    sql`
    update circuit set moving_until = now() + make_interval(secs => ${MOVING_SECONDS})
     where id = any(${ids}) returning ${CIRCUIT}`,
    'continue-moves',
  )
  return rows
}

export interface NewPath extends Version {
  readonly routerIds: readonly string[]
  readonly linkIds: readonly string[]
}

/** Saves paths of circuits that still have this version, and returns these circuits. */
export async function savePaths(db: Db, paths: readonly NewPath[]): Promise<readonly Circuit[]> {
  const { rows } = await db.query<Circuit>(
    sql`
    update circuit set router_ids = path."routerIds", link_ids = path."linkIds", updated_at = now()
      from jsonb_to_recordset(${JSON.stringify(paths)}::jsonb)
           as path ("id" text, "version" int, "routerIds" text[], "linkIds" text[])
     where circuit.id = path."id" and circuit.version = path."version"
    returning ${CIRCUIT}`,
    'save-paths',
  )
  return rows
}

/**
 * Completes moves of circuits that still have this version, and returns their ids. They are verified next: a router that
 * has restarted accepts the route of a circuit whose end it no longer has.
 */
export async function completeMoves(db: Db, circuits: readonly Version[]): Promise<ReadonlySet<string>> {
  const { rows } = await db.query<{ id: string }>(
    sql`
    update circuit set moving_until = null, verified_at = '-infinity' from ${versionsOf(circuits)} as moved
     where circuit.id = moved.id and circuit.version = moved.version
    returning circuit.id`,
    'complete-moves',
  )
  return new Set(rows.map(({ id }) => id))
}

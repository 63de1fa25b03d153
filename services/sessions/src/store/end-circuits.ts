import type { Db } from '@overlay/store/postgres'
import sql, { type Sql } from 'sql-template-tag'
import { beginsOrEndsAt, CIRCUIT, type Circuit, RELAXED } from './circuit.js'

/** A router reports that a circuit has ended. */
export interface EndReport {
  readonly circuitId: string
  readonly routerId: string
}

/**
 * Deletes circuits whose end a router reports. Answers each report with the deleted circuit; or unknown, also when
 * another report has deleted it; or foreign: the circuit neither begins nor ends at this router.
 */
export async function endReported(
  db: Db,
  reports: readonly EndReport[],
): Promise<(Circuit | 'unknown' | 'foreign')[]> {
  const { rows } = await db.query<
    Circuit & { ord: number; isForeign: boolean | null; deletedId: string | null }
  >(
    sql`
    with ${RELAXED},
         report as materialized (
         select * from unnest(${reports.map(({ circuitId }) => circuitId)}::text[],
                              ${reports.map(({ routerId }) => routerId)}::text[])
                  with ordinality as list (id, reporter_id, ord)),
         reported as materialized (
         select circuit.id from circuit join report using (id)
          where ${beginsOrEndsAt(sql`reporter_id`)} order by circuit.id for update of circuit),
         ended as (
         delete from circuit using relaxed where circuit.id in (select id from reported) returning ${CIRCUIT})
    select ord::int - 1 as ord, ended.id as "deletedId", not ${beginsOrEndsAt(sql`reporter_id`)} as "isForeign", ended.*
      from report left join circuit using (id) left join ended on ended.id = report.id
     order by ord`,
    'end-reported-circuits',
  )
  const seen = new Set<string>()
  return rows.map(({ ord: _, isForeign, deletedId, ...circuit }) => {
    if (deletedId === null || seen.has(deletedId)) return isForeign ? 'foreign' : 'unknown'
    seen.add(deletedId)
    return circuit
  })
}

/** Which circuits to end. */
export const ended = {
  ofSessions: (ids: readonly string[]): Sql => sql`client_id = any(${ids})`,
  /** A process that ends a session may stop before it ends the circuits. */
  ofNoSession: sql`not exists (select from session where session.id = client_id)`,
  ofTerminators: (ids: readonly string[]): Sql => sql`terminator_id = any(${ids})`,
  /** As `ofNoSession`, for bind sessions. A router may have created the terminator again, and circuits with it. */
  ofEndedTerminators: sql`
    exists (select from ended_terminator as past
             where past.id = terminator_id
               and (circuit.created_at <= ended_at
                    or circuit.created_at < ended_at + interval '1 minute' -- dialed before
                       and not exists (select from terminator where terminator.id = past.id)))`,
  byId: (ids: readonly string[]): Sql => sql`id = any(${ids})`,
  atRouter: (id: string): Sql => beginsOrEndsAt(sql`${id}`),
  /** Unless they were asked to move again meanwhile. */
  inVersions: (circuits: readonly Pick<Circuit, 'id' | 'version'>[]): Sql => sql`
    (id, version) in (select * from unnest(${circuits.map(({ id }) => id)}::text[],
                                           ${circuits.map(({ version }) => version)}::int[]))`,
}

/** Deletes at most `limit` circuits, and stores for each of their routers that it must receive an unroute. */
export async function endCircuits(db: Db, which: Sql, limit: number): Promise<readonly Circuit[]> {
  const { rows } = await db.query<Circuit>(sql`
    with ${RELAXED},
         found as materialized (select id from circuit where ${which} limit ${limit}),
         locked as materialized (
         select id from circuit where id in (select id from found) order by id for update),
         ended as (
         delete from circuit using relaxed where circuit.id in (select id from locked) returning ${CIRCUIT}),
         kept as (
         insert into unroute (router_id, circuit_id)
         select router_id, id from ended cross join unnest("routerIds") as router_id
             on conflict do nothing)
    select * from ended`)
  return rows
}

import { terminator } from '@overlay/model'
import type { RowChange } from '@overlay/store/change-log'
import { deleteRows } from '@overlay/store/kind-store'
import type { Db, Tx } from '@overlay/store/postgres'
import sql, { type Sql } from 'sql-template-tag'
import type { Precedence } from '../domain/terminator-precedence.js'
import { ENDED_TERMINATORS_KEPT_MINUTES } from '../limits.js'

/** Deletes terminators and returns their changes. */
export const endTerminators = (tx: Tx, which: Sql): Promise<RowChange[]> => deleteRows(tx, terminator, which)

/** Services of terminators that are missing from the copy of service names. */
export async function uncopiedServices(db: Db): Promise<readonly string[]> {
  const { rows } = await db.query<{ id: string }>(sql`
    select distinct service_id as id from terminator
     where not exists (select from known_service where known_service.id = service_id)`)
  return rows.map(({ id }) => id)
}

export interface TerminatorCount {
  readonly serviceId: string
  readonly routerId: string
  readonly precedence: Precedence
  readonly count: number
}

/** How many terminators services have, by router and precedence. */
export async function countTerminators(
  db: Db,
  serviceIds: readonly string[],
): Promise<readonly TerminatorCount[]> {
  const { rows } = await db.query<TerminatorCount>(
    sql`
    select service_id as "serviceId", router_id as "routerId", precedence, count(*)::int as count
      from terminator where service_id = any(${serviceIds}) group by service_id, router_id, precedence`,
    'count-terminators',
  )
  return rows
}

/** Remembers deleted terminators whose circuits must end. */
export async function rememberEnded(tx: Tx, ids: readonly string[]): Promise<void> {
  if (ids.length === 0) return
  await tx.query(
    sql`
    insert into ended_terminator (id, ended_at)
    select id, clock_timestamp() from unnest(${ids}::text[]) as id order by id
        on conflict (id) do update set ended_at = excluded.ended_at`,
    'remember-ended-terminators',
  )
}

/** To be called after their circuits have ended. */
export async function forgetEnded(db: Db): Promise<void> {
  await db.query(
    sql`
    delete from ended_terminator where id in (
           select id from ended_terminator where ended_at < now() - make_interval(mins => ${ENDED_TERMINATORS_KEPT_MINUTES})
              for update skip locked)`,
    'forget-ended-terminators',
  )
}

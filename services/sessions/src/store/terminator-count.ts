import type { Db } from '@overlay/store/postgres'
import sql from 'sql-template-tag'
import type { Precedence } from '../domain/terminator-precedence.js'

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

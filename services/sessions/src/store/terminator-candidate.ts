import type { Db } from '@overlay/store/postgres'
import sql from 'sql-template-tag'
import type { Precedence } from '../domain/terminator-precedence.js'

/** An instance of a service that a client dials. */
export interface DialedInstance {
  readonly serviceId: string
  readonly instanceId: string
  /** A terminator that is read in any case; empty: none. */
  readonly terminatorId: string
}

export interface CandidateRow {
  readonly place: number
  readonly id: string
  readonly routerId: string
  readonly binding: string
  readonly address: string
  readonly hostId: string
  readonly cost: number
  readonly precedence: Precedence
  /** Base64 by key. */
  readonly peerData: Readonly<Record<string, string>>
  /** The dynamic cost as other replicas see it. */
  readonly otherCost: number
}

/**
 * The terminators of each instance, at most `limit`: the sticky one, then those of connected routers, by precedence and
 * static cost. `place`: the index of the instance.
 * `replicaId`: the replica whose own costs are left out.
 */
export async function candidatesOf(
  db: Db,
  instances: readonly DialedInstance[],
  replicaId: string,
  limit: number,
): Promise<readonly CandidateRow[]> {
  const { rows } = await db.query<CandidateRow>(
    sql`
    select found.*, place::int - 1 as place
      from unnest(${instances.map(({ serviceId }) => serviceId)}::text[],
                  ${instances.map(({ instanceId }) => instanceId)}::text[],
                  ${instances.map(({ terminatorId }) => terminatorId)}::text[])
           with ordinality as dialed (service, instance, sticky, place)
     cross join lateral (
           select id, router_id as "routerId", binding, address, host_id as "hostId", cost, precedence,
                  peer_data as "peerData",
                  coalesce((select sum(other.cost) from terminator_cost as other
                             where terminator_id = id and replica_id <> ${replicaId}), 0)::int as "otherCost"
             from terminator
            where service_id = service and instance_id = instance
            order by id <> sticky, not exists (select from presence where presence.router_id = terminator.router_id),
                     case precedence when 'required' then 0 when 'default' then 1 else 2 end, cost, id
            limit ${limit}) as found`,
    'candidates',
  )
  return rows
}

/** Whether a service has terminators, of any instance. */
export async function hasTerminators(db: Db, serviceId: string): Promise<boolean> {
  const { rowCount } = await db.query(
    sql`select from terminator where service_id = ${serviceId} limit 1`,
    'has-terminators',
  )
  return rowCount === 1
}

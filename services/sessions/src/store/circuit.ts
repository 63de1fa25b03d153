import type { Caller } from '@overlay/rpc'
import type { Db } from '@overlay/store/postgres'
import sql, { type Sql } from 'sql-template-tag'
import type { CircuitPath } from '../domain/route-plan.js'

export interface NewCircuit extends CircuitPath {
  readonly id: string
  readonly sessionId: string
  /** The client. */
  readonly identityId: string
  readonly serviceId: string
  readonly terminatorId: string
  readonly instanceId: string
  readonly hostId: string
  /** The replica that sets it up. */
  readonly controllerId: string
  readonly initiatorLocalAddress: string
  readonly initiatorRemoteAddress: string
  readonly terminatorLocalAddress: string
  readonly terminatorRemoteAddress: string
}

export interface Circuit extends NewCircuit {
  /** Grows with each request to move it. */
  readonly version: number
  readonly createdAt: Date
  readonly updatedAt: Date
}

export const CIRCUIT = sql`
  circuit.id, client_id as "sessionId", identity_id as "identityId", service_id as "serviceId",
  terminator_id as "terminatorId", instance_id as "instanceId", host_id as "hostId", controller_id as "controllerId",
  router_ids as "routerIds", link_ids as "linkIds", ingress_address as "ingressAddress",
  egress_address as "egressAddress", initiator_local_address as "initiatorLocalAddress",
  initiator_remote_address as "initiatorRemoteAddress", terminator_local_address as "terminatorLocalAddress",
  terminator_remote_address as "terminatorRemoteAddress", circuit.version, circuit.created_at as "createdAt",
  circuit.updated_at as "updatedAt"`

/**
 * The commit does not wait for the disk. A crash of the database loses the last inserts and deletes. Routers report
 * circuits without a row when these are idle, and do not know circuits that have ended.
 */
export const RELAXED = sql`relaxed as materialized (select set_config('synchronous_commit', 'off', true))`

/**
 * Inserts circuits. False: the session has ended, and so must the circuit. The rows of sessions are locked: either this
 * statement sees the end of a session, or the statement that ends the circuits of the session sees the circuit.
 */
export async function insertCircuits(db: Db, circuits: readonly NewCircuit[]): Promise<boolean[]> {
  const { rows } = await db.query<{ id: string }>(
    sql`
    with ${RELAXED},
         request as materialized (
         select * from jsonb_to_recordset(${JSON.stringify(circuits)}::jsonb) as (
                "id" text, "sessionId" text, "identityId" text, "serviceId" text, "terminatorId" text,
                "instanceId" text, "hostId" text, "controllerId" text, "routerIds" text[], "linkIds" text[],
                "ingressAddress" text, "egressAddress" text, "initiatorLocalAddress" text,
                "initiatorRemoteAddress" text, "terminatorLocalAddress" text, "terminatorRemoteAddress" text)),
         live as materialized (
         select session.id from session
          where session.id in (select "sessionId" from request) order by session.id for key share)
    insert into circuit (id, client_id, identity_id, service_id, terminator_id, instance_id, host_id, controller_id,
           router_ids, link_ids, ingress_address, egress_address, initiator_local_address, initiator_remote_address,
           terminator_local_address, terminator_remote_address)
    select request."id", "sessionId", "identityId", "serviceId", "terminatorId", "instanceId", "hostId",
           "controllerId", "routerIds", "linkIds", "ingressAddress", "egressAddress", "initiatorLocalAddress",
           "initiatorRemoteAddress", "terminatorLocalAddress", "terminatorRemoteAddress"
      from request join live on live.id = "sessionId" cross join relaxed
    returning id`,
    'insert-circuits',
  )
  const inserted = new Set(rows.map(({ id }) => id))
  return circuits.map(({ id }) => inserted.has(id))
}

/** The circuits among these. */
export async function circuitsById(db: Db, ids: readonly string[]): Promise<ReadonlyMap<string, Circuit>> {
  if (ids.length === 0) return new Map()
  const { rows } = await db.query<Circuit>(
    sql`select ${CIRCUIT} from circuit where id = any(${ids})`,
    'circuits-by-id',
  )
  return new Map(rows.map((row) => [row.id, row]))
}

export const beginsOrEndsAt = (routerId: Sql): Sql =>
  sql`(router_ids[1] = ${routerId} or router_ids[cardinality(router_ids)] = ${routerId})`

/** The routers of a circuit of the session, in order. None if the caller may not see the session. */
export async function routePath(
  db: Db,
  sessionId: string,
  { identityId, isAdmin }: Pick<Caller, 'identityId' | 'isAdmin'>,
): Promise<string[]> {
  const { rows } = await db.query<{ router_ids: string[] }>(sql`
      select router_ids from circuit
       where client_id = ${sessionId}
         and (${isAdmin} or exists (select from session where session.id = client_id and identity_id = ${identityId}))
       order by circuit.id limit 1`)
  return rows[0]?.router_ids ?? []
}

import type { Db } from '@overlay/store/postgres'
import sql, { type Sql } from 'sql-template-tag'
import { INITIAL_LATENCY_MS, type Link } from '../domain/link.js'

/** `version` is new with every change of the row. */
export interface LinkRow extends Link {
  readonly version: number
}

/** A link as its source reports it. */
export type ReportedLink = Pick<
  Link,
  'id' | 'sourceId' | 'destinationId' | 'protocol' | 'dialAddress' | 'iteration'
>

/** A report of one of the two routers that a link has failed. */
export interface LinkFault {
  readonly id: string
  readonly routerId: string
  /** 0: any. */
  readonly iteration: number
}

/** A router has a link that another one has dialed: it had the peer verified, or reports the link. */
export interface LinkAcceptance {
  readonly listenerId: string
  readonly dialerId: string
}

/** A measured latency, in milliseconds. */
export interface LinkLatency {
  readonly id: string
  readonly side: 'source' | 'destination'
  readonly latencyMs: number
}

/** One of the connections that a link consists of, as the fabric API shows it. */
export interface ShownConnection {
  readonly type: string
  readonly source: string
  readonly dest: string
}

/** The connections of a link, as its source reports them. Newer iterations replace older ones. */
export interface ConnectedLink {
  readonly id: string
  readonly iteration: number
  readonly stateIteration: number
  readonly connections: readonly ShownConnection[]
}

/** Of an administrator. */
export interface LinkSettings {
  readonly staticCost?: number | undefined
  readonly isDown?: boolean | undefined
}

const columns = sql`
  link.id, link.source_id as "sourceId", link.destination_id as "destinationId", link.protocol,
  link.dial_address as "dialAddress", link.iteration, link.static_cost as "staticCost",
  link.source_latency_ms as "sourceLatencyMs", link.destination_latency_ms as "destinationLatencyMs",
  link.is_down as "isDown", link.is_confirmed as "isConfirmed", link.version`

export async function readLinks(db: Db): Promise<readonly LinkRow[]> {
  const { rows } = await db.query<LinkRow>(sql`select ${columns} from link`, 'read-links')
  return rows
}

/** Replicas with equal sums have equal copies. */
export async function sumOfLinks(db: Db): Promise<{ readonly count: number; readonly versions: number }> {
  const { rows } = await db.query<{ count: number; versions: number }>(
    sql`select count(*) as count, coalesce(sum(version), 0)::bigint as versions from link`,
    'sum-of-links',
  )
  return rows[0] ?? { count: 0, versions: 0 }
}

/**
 * Stores links that are new, or that their source has dialed again, and returns these. Leaves out links to routers that
 * do not exist, and ids of links of other sources. No id may occur twice.
 */
export async function reportLinks(
  db: Db,
  replicaId: string,
  links: readonly ReportedLink[],
): Promise<readonly LinkRow[]> {
  const rows = links.map(({ id, sourceId, destinationId, protocol, dialAddress, iteration }) => ({
    id,
    source_id: sourceId,
    destination_id: destinationId,
    protocol,
    dial_address: dialAddress,
    iteration,
  }))
  const { rows: changed } = await db.query<LinkRow>(
    sql`
    insert into link (id, source_id, destination_id, protocol, dial_address, iteration,
                      source_latency_ms, destination_latency_ms, replica_id, is_confirmed)
    select reported.id, source_id, destination_id, protocol, dial_address, iteration,
           ${INITIAL_LATENCY_MS}::float8, ${INITIAL_LATENCY_MS}::float8, ${replicaId},
           exists (select from link_acceptance where listener_id = destination_id and dialer_id = source_id)
      from jsonb_to_recordset(${JSON.stringify(rows)}::jsonb) as reported (
           id text, source_id text, destination_id text, protocol text, dial_address text, iteration bigint)
      join router on router.id = destination_id
     order by reported.id
        on conflict (id) do update
       set destination_id = excluded.destination_id, protocol = excluded.protocol,
           dial_address = excluded.dial_address, iteration = excluded.iteration,
           source_latency_ms = excluded.source_latency_ms,
           destination_latency_ms = excluded.destination_latency_ms, replica_id = excluded.replica_id,
           is_confirmed = excluded.is_confirmed,
           version = nextval('link_version'), updated_at = now()
     where link.source_id = excluded.source_id and link.iteration < excluded.iteration
 returning ${columns}`,
    'report-links',
  )
  return changed
}

/** Stores that these links exist at both ends. */
export async function acceptLinks(db: Db, acceptances: readonly LinkAcceptance[]): Promise<void> {
  await db.query(
    sql`
    insert into link_acceptance (listener_id, dialer_id)
    select distinct listener.id, dialer.id
      from unnest(${acceptances.map(({ listenerId }) => listenerId)}::text[],
                  ${acceptances.map(({ dialerId }) => dialerId)}::text[]) as accepted (listener_id, dialer_id)
      join router as listener on listener.id = listener_id
      join router as dialer on dialer.id = dialer_id
     order by listener.id, dialer.id
        on conflict do nothing`,
    'accept-links',
  )
}

/**
 * Confirms links whose acceptance is stored, and returns them. After each report and each acceptance: of two at the same
 * time, the later one sees both.
 */
export async function confirmLinks(
  db: Db,
  ends: readonly Pick<Link, 'sourceId' | 'destinationId'>[],
): Promise<readonly LinkRow[]> {
  const { rows } = await db.query<LinkRow>(
    sql`
    with confirmed as (
         select link.id
           from link
           join link_acceptance on listener_id = destination_id and dialer_id = source_id
          where not is_confirmed
            and (source_id, destination_id) in (
                select * from unnest(${ends.map(({ sourceId }) => sourceId)}::text[],
                                     ${ends.map(({ destinationId }) => destinationId)}::text[]))
          order by link.id for update of link)
    update link set is_confirmed = true, version = nextval('link_version'), updated_at = now()
     where link.id in (select id from confirmed)
 returning ${columns}`,
    'confirm-links',
  )
  return rows
}

/** Deletes links that have failed, and returns them. Ignores reports about earlier iterations and by other routers. */
export async function deleteFailedLinks(db: Db, faults: readonly LinkFault[]): Promise<readonly LinkRow[]> {
  const rows = faults.map(({ id, routerId, iteration }) => ({ id, router_id: routerId, iteration }))
  const { rows: deleted } = await db.query<LinkRow>(
    sql`
    with failed as (
         select link.id
           from jsonb_to_recordset(${JSON.stringify(rows)}::jsonb) as fault (id text, router_id text, iteration bigint)
           join link on link.id = fault.id and fault.router_id in (source_id, destination_id)
          where fault.iteration = 0 or link.iteration = 0 or fault.iteration >= link.iteration
          order by link.id for update of link)
    delete from link where id in (select id from failed)
 returning ${columns}`,
    'delete-failed-links',
  )
  return deleted
}

/** The source is offline, or the destination does not exist. */
export const STALE = sql`
  (not exists (select from live_presence where router_id = source_id)
   or not exists (select from router where router.id = destination_id))`

/** Deletes those of these links for which the condition holds, and returns them. */
export async function deleteLinks(
  db: Db,
  ids: readonly string[],
  condition: Sql = sql`true`,
): Promise<readonly LinkRow[]> {
  const { rows } = await db.query<LinkRow>(sql`
    with found as (select id from link where id = any(${ids}) and ${condition} order by id for update)
    delete from link where id in (select id from found)
 returning ${columns}`)
  return rows
}

/** Returns the links that still exist. No end of a link may occur twice. */
export async function setLatencies(db: Db, latencies: readonly LinkLatency[]): Promise<readonly LinkRow[]> {
  const ends = new Map<string, { id: string; source?: number; destination?: number }>()
  for (const { id, side, latencyMs } of latencies) ends.set(id, { ...ends.get(id), id, [side]: latencyMs })
  const { rows } = await db.query<LinkRow>(
    sql`
    with measured as (
         select link.id, source, destination
           from jsonb_to_recordset(${JSON.stringify([...ends.values()])}::jsonb) as latency (
                id text, source float8, destination float8)
           join link using (id)
          order by link.id for update of link)
    update link
       set source_latency_ms = coalesce(measured.source, source_latency_ms),
           destination_latency_ms = coalesce(measured.destination, destination_latency_ms),
           version = nextval('link_version'), updated_at = now()
      from measured where link.id = measured.id
 returning ${columns}`,
    'set-latencies',
  )
  return rows
}

/** Stores the connections of links of one source. They are shown and nothing else: the version of the row stays. */
export async function setConnections(
  db: Db,
  sourceId: string,
  links: readonly ConnectedLink[],
): Promise<void> {
  const rows = links.map(({ id, iteration, stateIteration, connections }) => ({
    ...{ id, iteration, connections },
    place: [iteration, stateIteration],
  }))
  await db.query(
    sql`
    with reported as (
         select link.id, reported.connections, place
           from jsonb_to_recordset(${JSON.stringify(rows)}::jsonb) as reported (
                id text, iteration bigint, place bigint[], connections jsonb)
           join link on link.id = reported.id and link.iteration = reported.iteration and source_id = ${sourceId}
          where connections_order < place
          order by link.id for update of link)
    update link set connections = reported.connections, connections_order = place
      from reported where link.id = reported.id`,
    'set-connections',
  )
}

/** Undefined: there is no such link. */
export async function setLinkSettings(
  db: Db,
  id: string,
  { staticCost, isDown }: LinkSettings,
): Promise<LinkRow | undefined> {
  const { rows } = await db.query<LinkRow>(sql`
    update link
       set static_cost = coalesce(${staticCost ?? null}::integer, static_cost),
           is_down = coalesce(${isDown ?? null}::boolean, is_down),
           version = nextval('link_version'), updated_at = now()
     where id = ${id}
 returning ${columns}`)
  return rows[0]
}

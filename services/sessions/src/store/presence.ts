import { type Db, onlyRow } from '@overlay/store/postgres'
import sql from 'sql-template-tag'
import type { RouterFeatures } from '../domain/router-features.js'
import { DEAD_REPLICA_SECONDS } from '../limits.js'
import type { RouterConnection } from './router.js'

/** The connection of one router to one replica. */
export interface PresenceRow extends RouterConnection {
  readonly routerId: string
  /** Protobuf, base64. */
  readonly linkListeners: string
  readonly connectedAt: string
  readonly features: RouterFeatures
}

/** One process that has the id of a replica. */
export interface Incarnation {
  readonly id: string
  readonly incarnation: string
}

export interface ReplicaRow extends Incarnation {
  /** Counts the writes of its presence rows. */
  readonly version: number
  readonly leaseMs: number
}

/** Takes the id from the process that had it before, and deletes its rows. */
export async function takeReplicaId(
  db: Db,
  { id, incarnation }: Incarnation,
  leaseMs: number,
): Promise<void> {
  await db.query(sql`
    with deleted as (delete from presence where replica_id = ${id})
    insert into replica (id, incarnation, lease_ends_at)
    values (${id}, ${incarnation}, now() + make_interval(secs => ${leaseMs / 1000}))
        on conflict (id) do update
       set incarnation = excluded.incarnation, version = 0, lease_ends_at = excluded.lease_ends_at`)
}

export interface Renewal {
  /** `lost`: another process has the id. `new`: the row was deleted, and so were its presence rows. */
  readonly lease: 'renewed' | 'new' | 'lost'
  /** Replicas whose lease lives; the own one as before the renewal. */
  readonly live: readonly ReplicaRow[]
}

export async function renewLease(
  db: Db,
  { id, incarnation }: Incarnation,
  leaseMs: number,
): Promise<Renewal> {
  const { rows } = await db.query<{ isNew: boolean | null; live: readonly ReplicaRow[] }>(
    sql`
    with renewed as (
         insert into replica (id, incarnation, lease_ends_at)
         values (${id}, ${incarnation}, now() + make_interval(secs => ${leaseMs / 1000}))
             on conflict (id) do update set lease_ends_at = excluded.lease_ends_at
          where replica.incarnation = excluded.incarnation
      returning xmax = 0 as is_new)
    select (select is_new from renewed) as "isNew",
           (select coalesce(json_agg(live), '[]') from (${selectLive}) as live) as live`,
    'renew-lease',
  )
  const { isNew, live } = onlyRow(rows)
  return { lease: isNew === null ? 'lost' : isNew ? 'new' : 'renewed', live }
}

export async function deleteReplica(db: Db, { id, incarnation }: Incarnation): Promise<void> {
  await db.query(sql`delete from replica where id = ${id} and incarnation = ${incarnation}`)
}

/** Deletes the rows of processes that have ended without a stop. */
export async function deleteDeadReplicas(db: Db): Promise<void> {
  await db.query(
    sql`delete from replica where lease_ends_at < now() - make_interval(secs => ${DEAD_REPLICA_SECONDS})`,
  )
}

const selectLive = sql`
    select id, incarnation, version, (extract(epoch from lease_ends_at - now()) * 1000)::float8 as "leaseMs"
      from replica where lease_ends_at > now()`

/** Replicas whose lease lives. */
export async function liveReplicas(db: Db): Promise<readonly ReplicaRow[]> {
  return (await db.query<ReplicaRow>(selectLive)).rows
}

/**
 * Writes the rows of connected routers and deletes those of others. Returns the version of the replica, which is above
 * `last`, its version before the database lost the row. Undefined: the replica has no row, and nothing was written.
 */
export async function writePresence(
  db: Db,
  { id, incarnation }: Incarnation,
  saved: readonly PresenceRow[],
  removed: readonly string[],
  last: number,
): Promise<number | undefined> {
  const { rows } = await db.query<{ version: number }>(sql`
    with own as (select from replica where id = ${id} and incarnation = ${incarnation}),
    deleted as (
      delete from presence where replica_id = ${id} and router_id = any(${removed}) and exists (select from own)
    ),
    written as (
      insert into presence (router_id, replica_id, hostname, supported_protocols, sync_status, version_info,
                            link_listeners, connected_at, features)
      select "routerId", ${id}, hostname, "supportedProtocols", "syncStatus", "versionInfo",
             decode("linkListeners", 'base64'), "connectedAt", features
        from jsonb_to_recordset(${JSON.stringify(saved)}::jsonb) as row(
               "routerId" text, hostname text, "supportedProtocols" jsonb, "syncStatus" text, "versionInfo" jsonb,
               "linkListeners" text, "connectedAt" timestamptz, features jsonb)
       where exists (select from own)
          on conflict (router_id, replica_id) do update
         set hostname = excluded.hostname, supported_protocols = excluded.supported_protocols,
             sync_status = excluded.sync_status, version_info = excluded.version_info,
             link_listeners = excluded.link_listeners, connected_at = excluded.connected_at,
             features = excluded.features
    )
    update replica set version = greatest(version, ${last}::bigint) + 1
     where id = ${id} and incarnation = ${incarnation} returning version`)
  return rows[0]?.version
}

/** Rows of one replica as of one version. */
export interface ReplicaPresence extends Incarnation {
  readonly version: number
  readonly rows: readonly PresenceRow[]
}

export async function presenceOf(db: Db, replicaIds: readonly string[]): Promise<readonly ReplicaPresence[]> {
  const { rows } = await db.query<ReplicaPresence>(sql`
    select id, incarnation, version,
           (select coalesce(jsonb_agg(jsonb_build_object(
                     'routerId', router_id, 'hostname', hostname, 'supportedProtocols', supported_protocols,
                     'syncStatus', sync_status, 'versionInfo', version_info,
                     'linkListeners', encode(link_listeners, 'base64'), 'connectedAt', connected_at,
                     'features', features)), '[]')
              from presence where replica_id = replica.id) as rows
      from replica where id = any(${replicaIds}) and lease_ends_at > now()`)
  return rows
}

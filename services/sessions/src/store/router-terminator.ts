import { terminator } from '@overlay/model'
import type { RowChange } from '@overlay/store/change-log'
import { type AnyRow, changeOf, columnsOf, insertRows, rowOf } from '@overlay/store/kind-store'
import type { Db, Tx } from '@overlay/store/postgres'
import sql, { type Sql } from 'sql-template-tag'
import type { ClaimedChange, StoredTerminator, TerminatorClaim } from '../domain/terminator-claim.js'

/** A terminator to insert. */
export interface NewTerminator extends TerminatorClaim {
  readonly address: string
  readonly instanceId: string
  readonly instanceSecret: Buffer
  /** For clients, by key. */
  readonly peerData: ReadonlyMap<number, Buffer>
  /** True: only its router may change it. */
  readonly isSystem: boolean
  /** Without a session: an administrator must have created a terminator for router and service, and it ends with that. */
  readonly isByRouter: boolean
}

/** An administrator has created it. */
const OF_ADMINISTRATOR = sql`(session_id is null and not is_system and not is_by_router)`

const STORED = sql`
  id, service_id as "serviceId", router_id as "routerId", binding, host_id as "hostId", cost, precedence,
  saved_precedence as "savedPrecedence", session_id as "sessionId", ${OF_ADMINISTRATOR} as "isOfAdministrator"`

/** The terminators with these ids. */
export async function storedTerminators(
  db: Db,
  ids: readonly string[],
): Promise<ReadonlyMap<string, StoredTerminator>> {
  const { rows } = await db.query<StoredTerminator>(
    sql`select ${STORED} from terminator where id = any(${ids})`,
    'stored-terminators',
  )
  return new Map(rows.map((row) => [row.id, row]))
}

/** A terminator that is locked until the end of the transaction. */
export interface LockedTerminator extends StoredTerminator {
  /** With the names of the definition, for the audit. */
  readonly row: AnyRow
}

/** At most `limit` of the terminators, in the order of ids. */
export async function lockTerminators(
  tx: Tx,
  which: Sql,
  limit?: number,
): Promise<ReadonlyMap<string, LockedTerminator>> {
  const { rows } = await tx.query(sql`
    select ${columnsOf(terminator)}, saved_precedence, session_id, ${OF_ADMINISTRATOR} as of_administrator
      from terminator where ${which}
     order by id ${limit === undefined ? sql`` : sql`limit ${limit}`} for update`)
  return new Map(rows.map((row) => [String(row.id), lockedOf(row)]))
}

const lockedOf = (row: Parameters<typeof rowOf>[1]): LockedTerminator => ({
  id: row.id,
  serviceId: row.service_id,
  routerId: row.router_id,
  binding: row.binding,
  hostId: row.host_id,
  cost: row.cost,
  precedence: row.precedence,
  savedPrecedence: row.saved_precedence,
  sessionId: row.session_id,
  isOfAdministrator: row.of_administrator,
  row: rowOf(terminator, row),
})

/** Locks sessions and returns those that exist. Until the commit none of them ends. */
export async function lockSessions(tx: Tx, ids: readonly string[]): Promise<ReadonlySet<string>> {
  if (ids.length === 0) return new Set()
  const { rows } = await tx.query<{ id: string }>(
    sql`select id from session where id = any(${ids}) order by id for key share`,
    'lock-sessions',
  )
  return new Set(rows.map(({ id }) => id))
}

/** Locks routers and returns those that exist. Until the commit none of them is deleted. */
export async function lockRouters(tx: Tx, ids: readonly string[]): Promise<ReadonlySet<string>> {
  const { rows } = await tx.query<{ id: string }>(
    sql`select id from router where id = any(${ids}) order by id for key share`,
    'lock-routers',
  )
  return new Set(rows.map(({ id }) => id))
}

type Place = Pick<NewTerminator, 'routerId' | 'serviceId'>

/** Locks the terminators of administrators for these routers and services, and returns whether a place has one. */
export async function lockPlaces(tx: Tx, places: readonly Place[]): Promise<(place: Place) => boolean> {
  if (places.length === 0) return () => false
  const { rows } = await tx.query<Place>(
    sql`
    select router_id as "routerId", service_id as "serviceId" from terminator
     where (router_id, service_id) in (select * from unnest(${places.map(({ routerId }) => routerId)}::text[],
                                                            ${places.map(({ serviceId }) => serviceId)}::text[]))
       and ${OF_ADMINISTRATOR}
     order by id for key share`,
    'lock-places',
  )
  return (place) =>
    rows.some(({ routerId, serviceId }) => routerId === place.routerId && serviceId === place.serviceId)
}

type Instance = Pick<NewTerminator, 'serviceId' | 'instanceId'>

/** Locks instances of services: until the commit no other transaction that locks them inserts their terminators. */
export async function lockInstances(tx: Tx, instances: readonly Instance[]): Promise<void> {
  const keys = [...new Set(instances.map(({ serviceId, instanceId }) => `${serviceId} ${instanceId}`))]
  await tx.query(
    sql`
    select pg_advisory_xact_lock(key)
      from (select distinct hashtextextended(current_schema() || ' instance ' || name, 0) as key
              from unnest(${keys}::text[]) as name order by 1) as keys`,
    'lock-instances',
  )
}

/** A terminator of each instance and each identity that hosts it. */
export async function hostsOfInstances(
  tx: Tx,
  instances: readonly Instance[],
): Promise<readonly (Instance & Pick<NewTerminator, 'id' | 'hostId'>)[]> {
  const { rows } = await tx.query<Instance & Pick<NewTerminator, 'id' | 'hostId'>>(
    sql`
    select service_id as "serviceId", instance_id as "instanceId", host_id as "hostId", min(id) as id
      from terminator
     where (service_id, instance_id) in (select * from unnest(${instances.map(({ serviceId }) => serviceId)}::text[],
                                                              ${instances.map(({ instanceId }) => instanceId)}::text[]))
     group by service_id, instance_id, host_id`,
    'hosts-of-instances',
  )
  return rows
}

/** Inserts the terminators whose id is free, and returns their changes. */
export const insertTerminators = (tx: Tx, terminators: readonly NewTerminator[]): Promise<RowChange[]> =>
  insertRows(
    tx,
    terminator,
    sql`
    insert into terminator
           (id, service_id, router_id, binding, address, instance_id, identity_secret, host_id, cost, precedence,
            session_id, peer_data, is_system, is_by_router)
    select id, service_id, router_id, binding, address, instance_id, identity_secret, host_id, cost, precedence,
           session_id, peer_data, is_system, is_by_router
      from jsonb_populate_recordset(null::terminator, ${JSON.stringify(terminators.map(columns))}::jsonb)
     order by id
        on conflict (id) do nothing`,
    'insert-terminators',
  )

const columns = (one: NewTerminator) => ({
  id: one.id,
  service_id: one.serviceId,
  router_id: one.routerId,
  binding: one.binding,
  address: one.address,
  instance_id: one.instanceId,
  identity_secret: one.instanceSecret.toString('base64'),
  host_id: one.hostId,
  cost: one.cost,
  precedence: one.precedence,
  session_id: one.sessionId,
  peer_data: Object.fromEntries([...one.peerData].map(([key, value]) => [key, value.toString('base64')])),
  is_system: one.isSystem,
  is_by_router: one.isByRouter,
})

/** Changes locked terminators, and returns the changes for the audit. */
export async function updateTerminators(
  tx: Tx,
  locked: ReadonlyMap<string, LockedTerminator>,
  changes: readonly ClaimedChange[],
): Promise<RowChange[]> {
  if (changes.length === 0) return []
  const list = JSON.stringify(
    changes.map(({ id, cost, precedence, savedPrecedence, sessionId }) => ({
      entry_id: id,
      new_cost: cost,
      new_precedence: precedence,
      new_saved: savedPrecedence,
      new_session: sessionId,
    })),
  )
  const { rows } = await tx.query(
    sql`
    update terminator
       set cost = new_cost, precedence = new_precedence, saved_precedence = new_saved, session_id = new_session,
           updated_at = clock_timestamp()
      from jsonb_to_recordset(${list}::jsonb)
        as entry (entry_id text, new_cost integer, new_precedence text, new_saved text, new_session text)
     where id = entry_id
 returning ${columnsOf(terminator)}`,
    'update-terminators',
  )
  return rows.flatMap((stored) => {
    const [after, before] = [rowOf(terminator, stored), locked.get(stored.id)?.row]
    return before ? [changeOf(terminator, after.id, before, after)] : []
  })
}

/** Terminators of one page of a router, with the marker of their last change, for validation. */
export interface ToValidate {
  readonly id: string
  readonly routerId: string
  readonly binding: string
  readonly address: string
  /** Milliseconds. */
  readonly marker: number
}

/** Each change increases it. */
const MARKER = sql`(extract(epoch from updated_at) * 1000)::bigint`

const TO_VALIDATE = sql`id, router_id as "routerId", binding, address, ${MARKER} as marker`

/** The next terminators of each router, in the order of ids. `place`: the index of the page. */
export async function nextOfRouters(
  db: Db,
  pages: readonly { readonly routerId: string; readonly after: string }[],
  limit: number,
): Promise<readonly (ToValidate & { readonly place: number })[]> {
  const { rows } = await db.query<ToValidate & { place: number }>(
    sql`
    select found.*, place::int - 1 as place
      from unnest(${pages.map(({ routerId }) => routerId)}::text[], ${pages.map(({ after }) => after)}::text[])
           with ordinality as page (router, after, place)
     cross join lateral (select ${TO_VALIDATE} from terminator
                          where router_id = router and id > after order by id limit ${limit}) as found`,
    'next-terminators-of-routers',
  )
  return rows
}

/** The terminators among these that still exist. */
export async function terminatorsToValidate(db: Db, ids: readonly string[]): Promise<readonly ToValidate[]> {
  const { rows } = await db.query<ToValidate>(
    sql`select ${TO_VALIDATE} from terminator where id = any(${ids}) order by id`,
    'terminators-to-validate',
  )
  return rows
}

/** A terminator that its router does not know. */
export interface InvalidTerminator {
  readonly id: string
  readonly routerId: string
  readonly marker: number
}

/** Selects terminators that are unchanged since their validation began. */
export const unchangedSince = (invalid: readonly InvalidTerminator[]): Sql => sql`
  (id, router_id, ${MARKER}) in (
         select * from unnest(${invalid.map(({ id }) => id)}::text[], ${invalid.map(({ routerId }) => routerId)}::text[],
                              ${invalid.map(({ marker }) => marker)}::bigint[]))`

/** Whether any of these sessions has terminators. */
export async function haveTerminators(db: Db, sessionIds: readonly string[]): Promise<boolean> {
  const { rowCount } = await db.query(
    sql`select from terminator where session_id = any(${sessionIds}) limit 1`,
    'have-terminators',
  )
  return rowCount === 1
}

/** Terminators with this binding, to create them again. */
export async function terminatorsOfSessions(
  db: Db,
  sessionIds: readonly string[],
  binding: string,
): Promise<readonly NewTerminator[]> {
  type Row = Omit<NewTerminator, 'instanceSecret' | 'peerData'> & {
    readonly secret: string
    readonly peers: Readonly<Record<string, string>>
  }
  const { rows } = await db.query<Row>(
    sql`
    select id, service_id as "serviceId", router_id as "routerId", binding, host_id as "hostId", cost,
           coalesce(saved_precedence, precedence) as precedence, session_id as "sessionId", address,
           instance_id as "instanceId", identity_secret as secret, peer_data as peers, is_system as "isSystem",
           is_by_router as "isByRouter"
      from terminator where session_id = any(${sessionIds}) and binding = ${binding}`,
    'terminators-of-sessions',
  )
  const bytes = (text: string) => Buffer.from(text, 'base64')
  return rows.map(({ secret, peers, ...row }) => ({
    ...row,
    instanceSecret: bytes(secret),
    peerData: new Map(Object.entries(peers).map(([key, value]) => [Number(key), bytes(value)])),
  }))
}

/** Selects terminators whose session has ended. */
const WITHOUT_SESSION = sql`
  (session_id is not null and not exists (select from session where session.id = session_id))`

/** Selects terminators of routers whose service and router have none of an administrator any more. */
export const WITHOUT_PLACE = sql`
  (is_by_router and not exists (select from terminator as granting
                                 where granting.router_id = terminator.router_id
                                   and granting.service_id = terminator.service_id
                                   and granting.session_id is null
                                   and not granting.is_system and not granting.is_by_router))`

export const ORPHANED = sql`(${WITHOUT_SESSION} or ${WITHOUT_PLACE})`

/** Terminators that have lost what they were created by. */
export async function orphanedTerminators(db: Db, limit: number): Promise<readonly string[]> {
  const { rows } = await db.query<{ id: string }>(
    sql`
    (select id from terminator where ${WITHOUT_SESSION} limit ${limit})
    union all (select id from terminator where ${WITHOUT_PLACE} limit ${limit})`,
    'orphaned-terminators',
  )
  return rows.map(({ id }) => id)
}

import { edgeRouter, transitRouter, type ViewOf } from '@overlay/model'
import type { Context, Written } from '@overlay/rpc'
import type { ChangeLog } from '@overlay/store/change-log'
import { changeOf, columnsOf, loadersOf, newId, rowOf } from '@overlay/store/kind-store'
import { batch, type Db, onlyRow } from '@overlay/store/postgres'
import sql, { type Sql } from 'sql-template-tag'
import { type ClientRouter, clientRouter, type RouterRow } from '../domain/client-router.js'

/** The rows of each of the two kinds of routers. */
export const edgeRows = sql`is_edge`
export const transitRows = sql`not is_edge`

/** All routers, as their changes show them. */
export const routerLoaders = (db: Db) =>
  loadersOf(db, [
    { entity: edgeRouter, followedRows: edgeRows },
    { entity: transitRouter, followedRows: transitRows },
  ])

/** What a router reports while it is connected. */
export interface RouterConnection {
  readonly hostname: string
  readonly supportedProtocols: Readonly<Record<string, string>>
  readonly syncStatus: string
  readonly versionInfo: ViewOf<typeof edgeRouter>['versionInfo']
}

/** Where other routers reach connected routers: the `LinkListeners` of their hello. */
export async function linkListenersOf(db: Db, ids: readonly string[]): Promise<ReadonlyMap<string, Buffer>> {
  if (ids.length === 0) return new Map()
  const { rows } = await db.query<{ id: string; listeners: Buffer }>(sql`
    select distinct on (router_id) router_id as id, link_listeners as listeners
      from live_presence where router_id = any(${ids}) order by router_id, connected_at desc`)
  return new Map(rows.map(({ id, listeners }) => [id, listeners]))
}

/** The connections of these routers. Routers without a connection are missing. */
export async function connectionsOf(
  db: Db,
  ids: readonly string[],
): Promise<ReadonlyMap<string, RouterConnection>> {
  if (ids.length === 0) return new Map()
  const { rows } = await db.query<RouterConnection & { id: string }>(
    sql`
    select router_id as id, hostname, supported_protocols as "supportedProtocols",
           sync_status as "syncStatus", version_info as "versionInfo"
      from (${bestPresence(ids)}) as presence`,
    'live-routers',
  )
  return new Map(rows.map(({ id, ...connection }) => [id, connection]))
}

/** One connection of each router: that of the replica that has synchronized it, else the newest. */
const bestPresence = (ids: readonly string[]): Sql => sql`
  select distinct on (router_id) router_id, hostname, supported_protocols, sync_status, version_info
    from live_presence where router_id = any(${ids})
   order by router_id, sync_status = 'SYNC_DONE' desc, connected_at desc`

/** By id. */
export type ClientRouters = ReadonlyMap<string, ClientRouter>

/** Edge routers as clients see them. */
export async function clientRoutersOf(db: Db, ids: readonly string[]): Promise<ClientRouters> {
  if (ids.length === 0) return new Map()
  const { rows } = await db.query<RouterRow>(
    sql`
    select id, name, cost, no_traversal as "noTraversal", disabled, router_id is not null as "isOnline", hostname,
           supported_protocols as "supportedProtocols", sync_status as "syncStatus"
      from router left join (${bestPresence(ids)}) as presence on router_id = id
     where id = any(${ids}) and is_edge`,
    'describe-routers',
  )
  return new Map(rows.map((row) => [row.id, clientRouter(row)]))
}

/** The same, batched. */
export const batchedClientRouters = (db: Db) =>
  batch<readonly string[], ClientRouters>(async (requests) => {
    const all = await clientRoutersOf(db, [...new Set(requests.flat())])
    return requests.map(() => all)
  })

/** What the identity of a router depends on. */
export interface RouterNaming {
  readonly name: string
  readonly isTunnelerEnabled: boolean
}

/** Of an edge router. */
export async function routerNaming(db: Db, id: string): Promise<RouterNaming | undefined> {
  const { rows } = await db.query<RouterNaming>(sql`
    select name, is_tunneler_enabled as "isTunnelerEnabled" from router where id = ${id} and is_edge`)
  return rows[0]
}

export async function isEdgeRouter(db: Db, id: string): Promise<boolean> {
  const { rowCount } = await db.query(sql`select from router where id = ${id} and is_edge`)
  return rowCount === 1
}

/** Gives an edge router a new enrollment. Undefined: there is no such router. */
export const resetEnrollment = (changeLog: ChangeLog, context: Context, id: string) =>
  updateRouter(
    changeLog,
    context,
    sql`id = ${id} and is_edge`,
    sql`
      is_verified = false, fingerprint = null, cert_pem = null, former_fingerprints = '{}',
      unverified_fingerprint = null, unverified_cert_pem = null, enrollment_id = ${newId('short')}`,
  )

export interface Admission {
  readonly routerId: string
  readonly enrollmentId: string
  readonly certPem: string
  readonly fingerprint: string
}

/** Saves the certificate of a router of either kind. Undefined: no router has this enrollment. */
export const admitRouter = (
  changeLog: ChangeLog,
  context: Context,
  { routerId, enrollmentId, certPem, fingerprint }: Admission,
) =>
  updateRouter(
    changeLog,
    context,
    sql`id = ${routerId} and enrollment_id = ${enrollmentId}`,
    sql`is_verified = true, fingerprint = ${fingerprint}, cert_pem = ${certPem}`,
  )

/** Changes one router. Undefined: there is none like this. */
export async function updateRouter(
  changeLog: ChangeLog,
  context: Context,
  which: Sql,
  set: Sql,
): Promise<Written | undefined> {
  const { result, position } = await changeLog.write(context, async (tx) => {
    const locked = await tx.query(sql`select ${columnsOf(edgeRouter)} from router where ${which} for update`)
    const [before] = locked.rows
    if (!before) return { result: undefined, changes: [] }
    const id = String(before.id)
    const { rows } = await tx.query(sql`
      update router set ${set}, updated_at = clock_timestamp() where id = ${id}
   returning ${columnsOf(edgeRouter)}`)
    const entity = before.is_edge ? edgeRouter : transitRouter
    const change = changeOf(entity, id, rowOf(entity, before), rowOf(entity, onlyRow(rows)))
    return { result: id, changes: [change] }
  })
  return result === undefined ? undefined : { id: result, position }
}

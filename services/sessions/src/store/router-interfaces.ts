import type { NetworkInterface } from '@overlay/model'
import type { Db } from '@overlay/store/postgres'
import sql from 'sql-template-tag'

/** Replaces what is stored of a router, unless it is equal. */
export async function saveInterfaces(
  db: Db,
  routerId: string,
  interfaces: readonly NetworkInterface[],
): Promise<void> {
  await db.query(
    sql`
    insert into router_interfaces (router_id, interfaces)
    select id, ${JSON.stringify(interfaces)}::jsonb from router where id = ${routerId}
        on conflict (router_id) do update set interfaces = excluded.interfaces
     where router_interfaces.interfaces <> excluded.interfaces`,
    'save-interfaces',
  )
}

/** The interfaces of these routers. Routers that have never reported any are missing. */
export async function interfacesOfRouters(
  db: Db,
  ids: readonly string[],
): Promise<ReadonlyMap<string, readonly NetworkInterface[]>> {
  if (ids.length === 0) return new Map()
  const { rows } = await db.query<{ id: string; interfaces: readonly NetworkInterface[] }>(
    sql`select router_id as id, interfaces from router_interfaces where router_id = any(${ids})`,
    'interfaces-of-routers',
  )
  return new Map(rows.map(({ id, interfaces }) => [id, interfaces]))
}

import type { RowChange } from '@overlay/store/change-log'
import type { Tx } from '@overlay/store/postgres'
import sql from 'sql-template-tag'

/** A service of policy; no name: it is deleted. */
export interface ServiceName {
  readonly id: string
  readonly name: string | undefined
}

/** Keeps a copy of the names of services for filters. The last name of a service counts. */
export async function copyServiceNames(tx: Tx, services: readonly ServiceName[]): Promise<void> {
  const last = [...new Map(services.map(({ id, name }) => [id, name]))]
  const deleted = last.filter(([, name]) => name === undefined)
  const named = last.filter(([, name]) => name !== undefined)
  if (deleted.length > 0) {
    const ids = deleted.map(([id]) => id)
    await tx.query(sql`delete from known_service where id = any(${ids})`)
  }
  if (named.length > 0) {
    await tx.query(sql`
    insert into known_service (id, name)
    select * from unnest(${named.map(([id]) => id)}::text[], ${named.map(([, name]) => name)}::text[])
        on conflict (id) do update set name = excluded.name`)
  }
}

/** The same for services that have another name in the copy, or none. Returns what it changed. */
export async function correctServiceNames(tx: Tx, services: readonly ServiceName[]): Promise<RowChange[]> {
  const { rows } = await tx.query<{ id: string; name: string }>(sql`
    select id, name from known_service where id = any(${services.map(({ id }) => id)})`)
  const copied = new Map(rows.map(({ id, name }) => [id, name]))
  const wrong = services.filter(({ id, name }) => copied.get(id) !== name)
  await copyServiceNames(tx, wrong)
  return wrong.map(({ id, name }) => ({
    kind: 'known-services',
    id,
    before: auditRow(copied.get(id)),
    after: auditRow(name),
  }))
}

const auditRow = (name: string | undefined): object | null => (name === undefined ? null : { name })

export async function deleteServiceNames(tx: Tx, ids: readonly string[]): Promise<RowChange[]> {
  await tx.query(sql`delete from known_service where id = any(${ids})`)
  return []
}

export async function deleteAllServiceNames(tx: Tx): Promise<void> {
  await tx.query(sql`delete from known_service`)
}

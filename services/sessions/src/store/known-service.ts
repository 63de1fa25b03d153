import type { RowChange } from '@overlay/platform/change-log'
import type { Tx } from '@overlay/platform/postgres'
import type { Change } from '@overlay/rpc'
import sql from 'sql-template-tag'

/** Keeps the names of services, by which filters find what belongs to them. */
export async function nameServices(tx: Tx, changes: readonly Change[]): Promise<void> {
  const last = new Map(changes.map(({ id, json }) => [id, nameIn(json)]))
  const named = [...last].filter(([, name]) => name !== undefined)
  const gone = [...last.keys()].filter((id) => last.get(id) === undefined)
  await tx.query(sql`delete from known_service where id = any(${gone})`)
  await tx.query(sql`
    insert into known_service (id, name)
    select * from unnest(${named.map(([id]) => id)}::text[], ${named.map(([, name]) => name)}::text[])
        on conflict (id) do update set name = excluded.name`)
}

const nameIn = (json: Change['json']): string | undefined =>
  json.length > 0 ? (JSON.parse(Buffer.from(json).toString()) as { readonly name: string }).name : undefined

/** The same for those that have another name here, or none; tells which. */
export async function correctNames(tx: Tx, changes: readonly Change[]): Promise<RowChange[]> {
  const { rows } = await tx.query<{ id: string; name: string }>(sql`
    select id, name from known_service where id = any(${changes.map(({ id }) => id)})`)
  const known = new Map(rows.map(({ id, name }) => [id, name]))
  const wrong = changes.filter(({ id, json }) => known.get(id) !== nameIn(json))
  await nameServices(tx, wrong)
  return wrong.map(({ id, json }) => {
    const [before, after] = [known.get(id), nameIn(json)]
    return {
      kind: 'known-services',
      id,
      before: before === undefined ? null : { name: before },
      after: after === undefined ? null : { name: after },
    }
  })
}

export async function forgetServices(tx: Tx, gone: readonly string[]): Promise<RowChange[]> {
  await tx.query(sql`delete from known_service where id = any(${gone})`)
  return []
}

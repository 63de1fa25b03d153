import { isDeepStrictEqual } from 'node:util'
import type { ca, RowOf } from '@overlay/model'
import type { RowChange } from '@overlay/platform/change-log'
import type { Db, Tx } from '@overlay/platform/postgres'
import type { Change } from '@overlay/rpc'
import sql from 'sql-template-tag'

/** As pki tells it. */
export type KnownCa = Omit<RowOf<typeof ca>, 'createdAt' | 'updatedAt'>

export async function knownCas(db: Db): Promise<readonly KnownCa[]> {
  const { rows } = await db.query<{ row: KnownCa }>(sql`select row from known_ca order by id`, 'known-cas')
  return rows.map(({ row }) => row)
}

/** Keeps those that are told of, and leaves alone who has gone. */
export async function keepCas(tx: Tx, changes: readonly Change[]): Promise<void> {
  const told = changes.filter(({ json }) => json.length > 0)
  const [ids, rows] = [told.map(({ id }) => id), told.map(({ json }) => Buffer.from(json).toString())]
  await tx.query(sql`
    insert into known_ca (id, row)
    select id, row::jsonb from unnest(${ids}::text[], ${rows}::text[]) as told (id, row)
        on conflict (id) do update set row = excluded.row`)
}

/** The same for those that are otherwise here, or missing; tells which. */
export async function correctCas(tx: Tx, changes: readonly Change[]): Promise<RowChange[]> {
  const { rows } = await tx.query<{ id: string; row: object }>(sql`
    select id, row from known_ca where id = any(${changes.map(({ id }) => id)})`)
  const known = new Map(rows.map(({ id, row }) => [id, row]))
  const told = changes.map((change) => ({
    change,
    after: JSON.parse(Buffer.from(change.json).toString()) as object,
  }))
  const wrong = told.filter(({ change, after }) => !isDeepStrictEqual(known.get(change.id), after))
  await keepCas(
    tx,
    wrong.map(({ change }) => change),
  )
  return wrong.map(({ change: { id }, after }) => ({
    kind: 'known-cas',
    id,
    before: known.get(id) ?? null,
    after,
  }))
}

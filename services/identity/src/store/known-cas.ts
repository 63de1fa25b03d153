import type { ca, RowOf } from '@overlay/model'
import type { Db, Tx } from '@overlay/platform'
import sql from 'sql-template-tag'

/** As pki tells it. */
export type KnownCa = Omit<RowOf<typeof ca>, 'createdAt' | 'updatedAt'>

export async function knownCas(db: Db): Promise<readonly KnownCa[]> {
  const { rows } = await db.query<{ row: KnownCa }>(sql`select row from known_ca order by id`, 'known-cas')
  return rows.map(({ row }) => row)
}

export async function keepCas(tx: Tx, cas: readonly { readonly id: string; readonly json: string }[]) {
  await tx.query(sql`
    insert into known_ca (id, row)
    select id, row::jsonb
      from unnest(${cas.map(({ id }) => id)}::text[], ${cas.map(({ json }) => json)}::text[]) as told (id, row)
        on conflict (id) do update set row = excluded.row`)
}

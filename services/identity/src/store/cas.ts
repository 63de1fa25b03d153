import { isDeepStrictEqual } from 'node:util'
import type { ca, PlainOf } from '@overlay/model'
import type { RowChange } from '@overlay/store/change-log'
import type { Db, Tx } from '@overlay/store/postgres'
import sql, { type Sql } from 'sql-template-tag'
import { removeAuthenticators } from './authenticators.js'
import { endSessions } from './session-ends.js'

/** An external authority, copied from pki. */
export type CaCopy = PlainOf<typeof ca>

export interface CaRow {
  readonly id: string
  readonly row: object
}

export async function readCas(db: Db): Promise<readonly CaCopy[]> {
  const { rows } = await db.query<{ row: CaCopy }>(sql`select row from known_ca order by id`, 'known-cas')
  return rows.map(({ row }) => row)
}

export async function storeCas(tx: Tx, cas: readonly CaRow[]): Promise<void> {
  if (cas.length === 0) return
  const [ids, rows] = [cas.map(({ id }) => id), cas.map(({ row }) => JSON.stringify(row))]
  await tx.query(sql`
    insert into known_ca (id, row)
    select id, row::jsonb from unnest(${ids}::text[], ${rows}::text[]) as entry (id, row)
        on conflict (id) do update set row = excluded.row`)
}

/** Stores those that are missing or different here. Returns which. */
export async function correctCas(tx: Tx, cas: readonly CaRow[]): Promise<RowChange[]> {
  const { rows } = await tx.query<CaRow>(sql`
    select id, row from known_ca where id = any(${cas.map(({ id }) => id)})`)
  const stored = new Map(rows.map(({ id, row }) => [id, row]))
  const wrong = cas.filter(({ id, row }) => !isDeepStrictEqual(stored.get(id), row))
  await storeCas(tx, wrong)
  return wrong.map(({ id, row }) => ({ kind: 'known-cas', id, before: stored.get(id) ?? null, after: row }))
}

/** Removes authorities with what relies on them. None costs nothing: otherwise all sessions are read. */
export const removeCas = async (tx: Tx, ids: readonly string[]): Promise<RowChange[]> =>
  ids.length === 0 ? [] : removeCasWhere(tx, sql`= any(${ids})`)

/** The same of all but these; `ids` selects them. */
export const removeCasExcept = (tx: Tx, ids: Sql): Promise<RowChange[]> =>
  removeCasWhere(tx, sql`not in (${ids})`)

/**
 * Transactions that rely on an authority lock it first: they commit before this one, or find that it does not exist.
 */
async function removeCasWhere(tx: Tx, which: Sql): Promise<RowChange[]> {
  const ofThem = sql`ca_id is not null and ca_id ${which}`
  await tx.query(sql`delete from known_ca where id ${which}`)
  // before their sessions and authenticators, in the order of a delete of an identity
  await tx.query(sql`
    select from identity
     where id in (select identity_id from authenticator where ${ofThem}
                   union select identity_id from api_session where ${ofThem})
     order by id for no key update`)
  const ended = await endSessions(
    tx,
    sql`(${ofThem}) or authenticator_id in (select id from authenticator where ${ofThem})`,
  )
  return [...ended, ...(await removeAuthenticators(tx, ofThem))]
}

/** What relies on an authority: each selects `id` and `ref`. */
export const caReferences = {
  'known ca': sql`select id, id as ref from known_ca`,
  authenticator: sql`select id, ca_id as ref from authenticator where ca_id is not null`,
  apiSession: sql`select id, ca_id as ref from api_session where ca_id is not null`,
}

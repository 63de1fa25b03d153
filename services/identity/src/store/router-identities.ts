import { identity } from '@overlay/model'
import type { RowChange } from '@overlay/store/change-log'
import {
  type AnyRow,
  changeOf,
  changeRow,
  columnsOf,
  createdValues,
  insertRow,
  rowOf,
} from '@overlay/store/kind-store'
import { type Db, onlyRow, type Tx } from '@overlay/store/postgres'
import sql, { raw, type Sql } from 'sql-template-tag'
import { NAME_RESERVED } from '../limits.js'
import { removeAuthenticatorsOf } from './authenticators.js'
import { endSessionsOfIdentities } from './session-ends.js'

const columns = columnsOf(identity)
const ROUTER = 'Router'

/**
 * Inserts the identity of a router, or renames it, and ends the reservation of the name. A name that another identity has
 * nevertheless, because the router was written by an earlier release, gets the id as suffix: the router exists and cannot
 * be refused any more. The suffix stays when the name becomes free.
 */
export async function storeRouterIdentity(tx: Tx, id: string, routerName: string): Promise<RowChange[]> {
  await shareNames(tx)
  await releaseName(tx, { routerId: id, name: routerName })
  const before = await lockIdentities(tx, sql`id = ${id}`)
  const suffixed = `${routerName}-${id}`
  const name = (await isNameTaken(tx, routerName, id)) ? suffixed : routerName
  if (before.length === 0) {
    const { values, tags } = createdValues(identity, { name, isAdmin: false, authPolicyId: 'default' })
    return [await insertRow(tx, identity, id, { ...values, type: ROUTER }, tags)]
  }
  const isStale = sql`id = ${id} and type = ${ROUTER} and name not in (${routerName}, ${suffixed})`
  const change = await changeRow(tx, identity, isStale, sql`name = ${name}`)
  return change ? [change] : []
}

export const removeRouterIdentities = (tx: Tx, ids: readonly string[]): Promise<RowChange[]> =>
  removeWhere(tx, sql`id = any(${ids})`)

/** Removes all but these; `ids` selects them. */
export const removeRouterIdentitiesExcept = (tx: Tx, ids: Sql): Promise<RowChange[]> =>
  removeWhere(tx, sql`id not in (${ids})`)

/** With their authenticators and sessions. Identities of other types stay. */
async function removeWhere(tx: Tx, which: Sql): Promise<RowChange[]> {
  const removed = await lockIdentities(tx, sql`type = 'Router' and ${which}`)
  const ids = removed.map(({ id }) => id)
  if (ids.length === 0) return []
  const ended = await endSessionsOfIdentities(tx, ids)
  const authenticators = await removeAuthenticatorsOf(tx, ids)
  await tx.query(sql`delete from identity where id = any(${ids})`)
  return [...ended, ...authenticators, ...removed.map((row) => changeOf(identity, row.id, row, null))]
}

async function lockIdentities(tx: Tx, which: Sql): Promise<AnyRow[]> {
  const { rows } = await tx.query(sql`select ${columns} from identity where ${which} for update`)
  return rows.map((row) => rowOf(identity, row))
}

/** Selects `id` and `ref`: the identity of a router, and the router. */
export const routersOfIdentities = sql`select id, id as ref from identity where type = 'Router'`

/** A name that a router is about to get. */
export interface RouterName {
  readonly routerId: string
  readonly name: string
}

const key = raw(`hashtext(current_schema() || ' identity names')`)

/** From now to the commit no name becomes reserved: to be called before a transaction looks for a free name. */
export const shareNames = (tx: Tx) => tx.query(sql`select pg_advisory_xact_lock_shared(${key})`)

/** Whether an identity has the name, or a router is about to get it. `exceptId`: the identity of that router. */
export async function isNameTaken(db: Db, name: string, exceptId = ''): Promise<boolean> {
  const { rows } = await db.query<{ isTaken: boolean }>(sql`
    select exists (select from identity where name = ${name} and id <> ${exceptId})
        or exists (select from reserved_name where name = ${name} and router_id <> ${exceptId}) as "isTaken"`)
  return onlyRow(rows).isTaken
}

/** Whether the identity of a router has the name. */
export async function hasRouter(db: Db, name: string): Promise<boolean> {
  const { rowCount } = await db.query(sql`select from identity where name = ${name} and type = 'Router'`)
  return rowCount === 1
}

/** Waits for all transactions that give names to identities. False: the name is taken. */
export async function reserveName(tx: Tx, { routerId, name }: RouterName): Promise<boolean> {
  await tx.query(sql`select pg_advisory_xact_lock(${key})`)
  if (await isNameTaken(tx, name, routerId)) return false
  await tx.query(sql`
    insert into reserved_name (name, router_id, until) values (${name}, ${routerId}, now() + ${NAME_RESERVED})
        on conflict (name) do update set until = excluded.until`)
  return true
}

export const releaseName = (db: Db, { routerId, name }: RouterName) =>
  db.query(sql`delete from reserved_name where name = ${name} and router_id = ${routerId}`)

/** Reservations whose routers have the name by now, or never get it. */
export async function lapsedNames(db: Db): Promise<readonly RouterName[]> {
  const { rows } = await db.query<RouterName>(sql`
    select router_id as "routerId", name from reserved_name where until < now()`)
  return rows
}

/** Removes reservations that have not been renewed. */
export const removeLapsedNames = (db: Db, names: readonly RouterName[]) =>
  db.query(sql`
    delete from reserved_name
     where until < now()
       and (name, router_id) in (select * from unnest(${names.map(({ name }) => name)}::text[],
                                                      ${names.map(({ routerId }) => routerId)}::text[]))`)

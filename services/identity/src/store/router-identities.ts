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
import type { Tx } from '@overlay/store/postgres'
import sql, { type Sql } from 'sql-template-tag'
import { removeAuthenticatorsOf } from './authenticators.js'
import { isNameTaken, releaseName, shareNames } from './reserved-names.js'
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

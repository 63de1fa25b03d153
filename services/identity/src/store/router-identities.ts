import { identity } from '@overlay/model'
import type { RowChange } from '@overlay/platform/change-log'
import { type AnyRow, changeOf, columnsOf, rowOf } from '@overlay/platform/kind-store'
import type { Tx } from '@overlay/platform/postgres'
import sql, { type Sql } from 'sql-template-tag'
import { removeAuthenticatorsOf } from './authenticators.js'
import { endSessionsOfIdentities } from './session-ends.js'

const columns = columnsOf(identity)

/**
 * Inserts the identity of a router, or renames it. A name that another identity has gets the id as suffix, because the
 * router exists and cannot be refused any more; the suffix stays when the name becomes free.
 */
export async function storeRouterIdentity(tx: Tx, id: string, name: string): Promise<RowChange[]> {
  const [before] = await lockIdentities(tx, sql`id = ${id}`)
  const { rows } = await tx.query(sql`
    with free as (
         select case when exists (select from identity where name = ${name} and id <> ${id})
                     then ${`${name}-${id}`} else ${name} end as name)
    insert into identity (id, name, type, is_admin, auth_policy_id)
    select ${id}, name, 'Router', false, 'default' from free
        on conflict (id) do update set name = excluded.name, updated_at = clock_timestamp()
     where identity.type = 'Router' and identity.name not in (${name}, ${`${name}-${id}`})
 returning ${columns}`)
  return rows.map((row) => changeOf(identity, id, before ?? null, rowOf(identity, row)))
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

import type { RowChange } from '@overlay/store/change-log'
import type { Tx } from '@overlay/store/postgres'
import sql, { type Sql } from 'sql-template-tag'
import { columns, enrollmentChange, type OwnerKind, ownerColumns, storedOf } from './enrollments.js'

/** Records ids of enrollments, so that no late change creates them again. `from`: the table, or a list of its rows. */
const record = (from: Sql): Sql => sql`
  insert into ended_enrollment (id, owner_id, owner_kind)
  select ended.id, owner.id, owner.kind
    from ${from} as ended cross join lateral (values
         ('identities', identity_id), ('edge-routers', edge_router_id), ('transit-routers', transit_router_id)
         ) as owner (kind, id)
   where owner.id is not null
      on conflict do nothing`

/** Deletes enrollments, and records them. */
async function end(tx: Tx, which: Sql, name?: string): Promise<readonly RowChange[]> {
  const { rows } = await tx.query(
    sql`
    with deleted as (delete from enrollment where ${which} returning ${columns}),
         recorded as (${record(sql`deleted`)})
  select ${columns} from deleted`,
    name,
  )
  return rows.map((row) => enrollmentChange(String(row.id), storedOf(row), null))
}

/** For callers that delete the row themselves. */
export async function recordEnded(tx: Tx, id: string): Promise<void> {
  await tx.query(record(sql`(select * from enrollment where id = ${id})`))
}

export const endEnrollments = (tx: Tx, ids: readonly string[]): Promise<readonly RowChange[]> =>
  end(tx, sql`id = any(${ids})`, 'end-enrollments')

/** Ends the enrollments that need the authority. */
export const endEnrollmentsOfCa = (tx: Tx, caId: string): Promise<readonly RowChange[]> =>
  end(tx, sql`ca_id = ${caId}`)

/** Ends all enrollments of a router but one. */
export const endRouterEnrollments = (tx: Tx, id: string, exceptId = ''): Promise<readonly RowChange[]> =>
  end(tx, sql`(edge_router_id = ${id} or transit_router_id = ${id}) and id <> ${exceptId}`)

/**
 * Ends all enrollments of deleted owners, and forgets the ended ones: no change reports them again. The kind matters
 * because a router and the identity of its tunneler have the same id.
 */
export async function endEnrollmentsOfOwners(
  tx: Tx,
  kind: OwnerKind,
  ids: readonly string[],
): Promise<readonly RowChange[]> {
  const changes = await end(tx, sql`${ownerColumns[kind]} = any(${ids})`)
  await tx.query(sql`delete from ended_enrollment where owner_id = any(${ids}) and owner_kind = ${kind}`)
  return changes
}

/** Selects the ids of all owners that rows here name. */
export const ownerIds = (kind: OwnerKind): Sql => sql`
  select ${ownerColumns[kind]} as id from enrollment where ${ownerColumns[kind]} is not null
   union select owner_id from ended_enrollment where owner_kind = ${kind}`

/** Selects `id` and `ref`, the owner, for integrity checks. */
export const ownerReferences = (kind: OwnerKind): Sql =>
  sql`select id, ${ownerColumns[kind]} as ref from enrollment where ${ownerColumns[kind]} is not null`

/** The same of ended enrollments. */
export const endedOwnerReferences = (kind: OwnerKind): Sql => sql`
  select id, owner_id as ref from ended_enrollment where owner_kind = ${kind}`

import type { RowChange } from '@overlay/store/change-log'
import type { Tx } from '@overlay/store/postgres'
import sql from 'sql-template-tag'
import { changeIdentity } from './identities.js'

/** Costs and precedences of an identity, by services. Must match the index over both. */
const hosting = sql`(service_hosting_costs || service_hosting_precedences)`

/** Selects `id` and `ref`: an identity and a service for which it has a hosting cost or precedence. */
export const hostedServices = sql`
  select id, service as ref from identity, jsonb_object_keys(${hosting}) as service where ${hosting} <> '{}'`

/** Selects the ids of these services. */
export const hostedServiceIds = sql`select distinct ref as id from (${hostedServices}) as hosted`

/** Removes the costs and precedences of these services. */
export async function removeHosting(tx: Tx, services: readonly string[]): Promise<RowChange[]> {
  if (services.length === 0) return []
  const { rows } = await tx.query<{ id: string }>(sql`
    select id from identity
     where ${hosting} <> '{}' and ${hosting} ?| ${services}::text[] order by id for no key update`)
  const changes: RowChange[] = []
  for (const { id } of rows) {
    const sets = sql`
      service_hosting_costs = service_hosting_costs - ${services}::text[],
      service_hosting_precedences = service_hosting_precedences - ${services}::text[]`
    const change = await changeIdentity(tx, id, sets)
    if (change) changes.push(change)
  }
  return changes
}

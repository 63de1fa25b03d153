import { identity, referenceTo } from '@overlay/model'
import type { RowChange } from '@overlay/store/change-log'
import { changeRow } from '@overlay/store/kind-store'
import type { Db, Tx } from '@overlay/store/postgres'
import sql, { type Sql } from 'sql-template-tag'

interface ReferenceRow {
  readonly [member: string]: string
  readonly id: string
  readonly name: string
  readonly authPolicyId: string
}

/** References to identities as answers show them, with a link to the auth policy. */
export async function identityReferences(
  db: Db,
  ids: readonly string[],
): Promise<(id: string) => ReturnType<typeof referenceTo>> {
  const { rows } = await db.query<ReferenceRow>(sql`
    select id, name, auth_policy_id as "authPolicyId" from identity where id = any(${ids})`)
  const byId = new Map(rows.map((row) => [row.id, row]))
  return (id) => {
    const row = byId.get(id)
    return referenceTo(identity, id, row?.name, row)
  }
}

/** `extra`: further members for followers. */
export const changeIdentity = (
  tx: Tx,
  id: string,
  sets: Sql,
  extra?: object,
): Promise<RowChange | undefined> => changeRow(tx, identity, sql`id = ${id}`, sets, extra)

/** Records a change of the identity whose columns stay: what it shows has changed, or followers get `extra`. */
export const touchIdentity = (tx: Tx, id: string, extra?: object): Promise<RowChange | undefined> =>
  changeIdentity(tx, id, sql`name = name`, extra)

/** Keeps the identity from being deleted. Taken before all other locks, in the order of a delete. */
export const shareIdentity = (tx: Tx, id: string) =>
  tx.query(sql`select from identity where id = ${id} for key share`)

/** What clients report of themselves, as JSON; null: nothing. */
export interface ClientInfo {
  readonly env: string | null
  readonly sdk: string | null
}

/** Whether a row of identity has another one. */
export const infoDiffers = (
  i: Sql,
  { env, sdk }: { readonly [K in keyof ClientInfo]: ClientInfo[K] | Sql },
): Sql => sql`
  (${i}.env_info <> coalesce(${env}::jsonb, ${i}.env_info) or ${i}.sdk_info <> coalesce(${sdk}::jsonb, ${i}.sdk_info))`

/** Whether the identity has another one. */
export async function clientInfoDiffers(db: Db, identityId: string, info: ClientInfo): Promise<boolean> {
  const { rows } = await db.query(
    sql`
    select from identity i
     where id = ${identityId} and ${infoDiffers(sql`i`, info)}`,
    'client-info-differs',
  )
  return rows.length > 0
}

/** `isReport`: followers see that nothing else has changed. */
export const storeClientInfo = (
  tx: Tx,
  identityId: string,
  { env, sdk }: ClientInfo,
): Promise<RowChange | undefined> =>
  changeIdentity(
    tx,
    identityId,
    sql`env_info = coalesce(${env}::jsonb, env_info), sdk_info = coalesce(${sdk}::jsonb, sdk_info)`,
    { isReport: true },
  )

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

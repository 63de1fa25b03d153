import type { RowChange } from '@overlay/store/change-log'
import type { Db, Tx } from '@overlay/store/postgres'
import sql, { type Sql } from 'sql-template-tag'
import { changeIdentity } from './identities.js'

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

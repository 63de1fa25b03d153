import type { ChangeLog } from '@overlay/platform/change-log'
import type { Context } from '@overlay/rpc'
import sql from 'sql-template-tag'
import { changeIdentity } from './identities.js'

/** What the client says of itself belongs to the identity: the last login wins, and what it does not say stays. */
export async function keepInfo(
  changeLog: ChangeLog,
  context: Context,
  identityId: string,
  envInfo: Uint8Array,
  sdkInfo: Uint8Array,
): Promise<void> {
  const env = textOf(envInfo)
  const sdk = textOf(sdkInfo)
  if (env === null && sdk === null) return
  const { rows } = await changeLog.db.query(
    sql`
    select from identity
     where id = ${identityId}
       and (env_info <> coalesce(${env}::jsonb, env_info) or sdk_info <> coalesce(${sdk}::jsonb, sdk_info))`,
    'client-info-differs',
  )
  if (rows.length === 0) return
  await changeLog.write(context, async (tx) => {
    const change = await changeIdentity(
      tx,
      identityId,
      sql`env_info = coalesce(${env}::jsonb, env_info), sdk_info = coalesce(${sdk}::jsonb, sdk_info)`,
    )
    return { result: undefined, changes: change ? [change] : [] }
  })
}

const textOf = (json: Uint8Array): string | null => (json.length > 0 ? Buffer.from(json).toString() : null)

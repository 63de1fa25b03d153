import type { AuthenticateRequest, Context } from '@overlay/rpc'
import { type ChangeLog, writeChanges } from '@overlay/store/change-log'
import { type ClientInfo, clientInfoDiffers, storeClientInfo } from '../store/identities.js'

type Report = Pick<AuthenticateRequest, 'envInfo' | 'sdkInfo'>

/** Stores what a client reports of itself with its identity. The last login wins; an absent member stays. */
export async function updateClientInfo(
  changeLog: ChangeLog,
  context: Context,
  identityId: string,
  report: Report,
): Promise<void> {
  const info = clientInfoOf(report)
  if (info && (await clientInfoDiffers(changeLog.db, identityId, info)))
    await replaceClientInfo(changeLog, context, identityId, info)
}

/** Undefined: the client reports nothing. */
export function clientInfoOf({ envInfo, sdkInfo }: Report): ClientInfo | undefined {
  const info = { env: textOf(envInfo), sdk: textOf(sdkInfo) }
  return info.env === null && info.sdk === null ? undefined : info
}

export async function replaceClientInfo(
  changeLog: ChangeLog,
  context: Context,
  identityId: string,
  info: ClientInfo,
): Promise<void> {
  await writeChanges(changeLog, context, async (tx) => {
    const change = await storeClientInfo(tx, identityId, info)
    return change ? [change] : []
  })
}

const textOf = (json: Uint8Array): string | null => (json.length > 0 ? Buffer.from(json).toString() : null)

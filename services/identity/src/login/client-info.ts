import type { Context } from '@overlay/rpc'
import { type ChangeLog, writeChanges } from '@overlay/store/change-log'
import { type ClientInfo, clientInfoDiffers, storeClientInfo } from '../store/identities.js'

/** Stores what a client reports of itself with its identity. The last login wins; an absent part stays. */
export async function updateClientInfo(
  changeLog: ChangeLog,
  context: Context,
  identityId: string,
  { envInfo, sdkInfo }: { readonly envInfo: Uint8Array; readonly sdkInfo: Uint8Array },
): Promise<void> {
  const info = clientInfoOf({ envInfo, sdkInfo })
  if (info && (await clientInfoDiffers(changeLog.db, identityId, info)))
    await replaceClientInfo(changeLog, context, identityId, info)
}

/** Undefined: the client reports nothing. */
export function clientInfoOf({
  envInfo,
  sdkInfo,
}: {
  readonly envInfo: Uint8Array
  readonly sdkInfo: Uint8Array
}): ClientInfo | undefined {
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

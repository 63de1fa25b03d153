import type { IdentityServiceService, Methods } from '@overlay/rpc'
import * as store from '../store/disabled-identities.js'
import type { Deps } from './deps.js'

export const disableIdentity =
  ({ changeLog }: Deps): Methods<IdentityServiceService>['disableIdentity'] =>
  async ({ id, durationMinutes }, context) => {
    const { position } = await changeLog.write(context, async (tx) => {
      await store.refuseDefaultAdmin(tx, id)
      return { result: undefined, changes: await store.disableIdentity(tx, id, durationMinutes) }
    })
    return { id, position }
  }

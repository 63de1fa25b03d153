import type { IdentityServiceService, Methods } from '@overlay/rpc'
import * as store from '../store/disabled-identities.js'
import type { Deps } from './deps.js'

/** Enables an identity that an admin or too many failed logins disabled. */
export const enableIdentity =
  ({ changeLog }: Deps): Methods<IdentityServiceService>['enableIdentity'] =>
  async ({ id }, context) => {
    const { position } = await changeLog.write(context, async (tx) => ({
      result: undefined,
      changes: [await store.enableIdentity(tx, id)],
    }))
    return { id, position }
  }

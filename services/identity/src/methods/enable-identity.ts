import type { IdentityServiceService, Methods } from '@overlay/rpc'
import { writeChanges } from '@overlay/store/change-log'
import * as store from '../store/disabled-identities.js'
import type { Deps } from './deps.js'

/** Enables an identity that an admin or too many failed logins disabled. */
export const enableIdentity =
  ({ changeLog }: Deps): Methods<IdentityServiceService>['enableIdentity'] =>
  async ({ id }, context) => {
    const position = await writeChanges(changeLog, context, async (tx) => [
      await store.enableIdentity(tx, id),
    ])
    return { id, position }
  }

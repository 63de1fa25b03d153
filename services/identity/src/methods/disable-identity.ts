import type { IdentityServiceService, Methods } from '@overlay/rpc'
import { writeChanges } from '@overlay/store/change-log'
import * as store from '../store/disabled-identities.js'
import type { Deps } from './deps.js'

export const disableIdentity =
  ({ changeLog, waitForFollowers }: Deps): Methods<IdentityServiceService>['disableIdentity'] =>
  async ({ id, durationMinutes }, context) => {
    const position = await writeChanges(changeLog, context, async (tx) => {
      await store.refuseDefaultAdmin(tx, id)
      return store.disableIdentity(tx, id, durationMinutes)
    })
    return waitForFollowers({ id, position }, context, ['sessions']) // for the sessions of its API sessions
  }

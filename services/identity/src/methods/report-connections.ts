import type { IdentityServiceService, Methods } from '@overlay/rpc'
import { saveConnections } from '../store/identity-connections.js'
import type { Deps } from './deps.js'

export const reportConnections =
  ({ changeLog: { db } }: Deps): Methods<IdentityServiceService>['reportConnections'] =>
  async ({ identityIds }) => {
    await saveConnections(db, identityIds)
    return {}
  }

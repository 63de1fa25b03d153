import { Fault, type IdentityServiceService, type Methods } from '@overlay/rpc'
import { bearerMessage } from '../login/session-message.js'
import { bearerSession } from '../store/api-sessions.js'
import type { Deps } from './deps.js'

export const getBearerSession =
  ({ changeLog, lifetimes }: Deps): Methods<IdentityServiceService>['getBearerSession'] =>
  async (claims) => {
    const session = await bearerSession(changeLog.db, claims, lifetimes.lifetimeSeconds)
    if (!session) throw new Fault('UNAUTHORIZED')
    return bearerMessage(session, lifetimes)
  }

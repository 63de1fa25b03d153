import { Fault, type IdentityServiceService, type Methods } from '@overlay/rpc'
import { sessionMessage } from '../login/session-message.js'
import { sessionByToken } from '../store/api-sessions.js'
import type { Deps } from './deps.js'

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i

export const getApiSession =
  ({ changeLog, lifetimes }: Deps): Methods<IdentityServiceService>['getApiSession'] =>
  async ({ token }) => {
    const session = uuid.test(token)
      ? await sessionByToken(changeLog.db, token, lifetimes.lifetimeSeconds)
      : undefined
    if (!session) throw new Fault('UNAUTHORIZED')
    return sessionMessage(session, lifetimes)
  }

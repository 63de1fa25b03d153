import { isUuid } from '@overlay/model'
import { Fault, type IdentityServiceService, type Methods } from '@overlay/rpc'
import { sessionMessage } from '../login/session-message.js'
import { sessionByToken } from '../store/api-sessions.js'
import type { Deps } from './deps.js'

export const getApiSession =
  ({ changeLog, lifetimes }: Deps): Methods<IdentityServiceService>['getApiSession'] =>
  async ({ token }) => {
    const session = isUuid(token)
      ? await sessionByToken(changeLog.db, token, lifetimes.lifetimeSeconds)
      : undefined
    if (!session) throw new Fault('UNAUTHORIZED')
    return sessionMessage(session, lifetimes)
  }

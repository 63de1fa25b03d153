import { isUuid } from '@overlay/model'
import { Fault, type IdentityServiceService, type Methods } from '@overlay/rpc'
import { secondToken } from '../login/second-token.js'
import { sessionMessage } from '../login/session-message.js'
import { noteSecondToken, sessionByToken } from '../store/api-sessions.js'
import type { Deps } from './deps.js'

export const getApiSession =
  (deps: Deps): Methods<IdentityServiceService>['getApiSession'] =>
  async ({ token, bearerTokens }, context) => {
    const { changeLog, lifetimes, credentialFeed } = deps
    const session = isUuid(token)
      ? await sessionByToken(changeLog.db, token, lifetimes.lifetimeSeconds)
      : undefined
    if (!session) throw new Fault('UNAUTHORIZED')
    const demand = { ...session, requiredSigner: session.demands.requireExtJwtSigner }
    const second = await secondToken(deps, context, demand, bearerTokens)
    // routers learn it before the answer, as after a login
    if (second && (await noteSecondToken(changeLog.db, session.id, second))) await credentialFeed.handOver()
    return sessionMessage(session, lifetimes, second)
  }

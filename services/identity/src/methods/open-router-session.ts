import { type IdentityServiceService, type Methods, notFound } from '@overlay/rpc'
import { updateClientInfo } from '../login/client-info.js'
import { sessionMessage } from '../login/session-message.js'
import { openRouterSession as openSession } from '../store/router-sessions.js'
import type { Deps } from './deps.js'

/** For routers that are identities: the service that holds their control channel has authenticated them. */
export const openRouterSession =
  (deps: Deps): Methods<IdentityServiceService>['openRouterSession'] =>
  async (request, context) => {
    const { routerId, configTypes } = request
    if (configTypes.length > 0) await deps.configTypes.ready(context)
    const session = await openSession(deps.changeLog.db, routerId, configTypes)
    if (!session) throw notFound('identity', routerId)
    await updateClientInfo(deps.changeLog, context, routerId, request)
    await deps.credentialFeed.handOver()
    return {
      session: sessionMessage(session, deps.lifetimes),
      hosting: Buffer.from(JSON.stringify(session.hosting)),
    }
  }

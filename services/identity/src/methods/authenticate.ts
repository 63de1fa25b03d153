import type { IdentityServiceService, Methods } from '@overlay/rpc'
import { admit, refused } from '../login/admit.js'
import { clientInfoOf, replaceClientInfo } from '../login/client-info.js'
import { secondToken } from '../login/second-token.js'
import { apiSessionEvent } from '../login/session-event.js'
import { sessionMessage } from '../login/session-message.js'
import { openSession } from '../store/api-sessions.js'
import type { Deps } from './deps.js'

/** Opens a session for what was presented. Callers cannot tell refusals apart. */
export const authenticate =
  (deps: Deps): Methods<IdentityServiceService>['authenticate'] =>
  async (request, context) => {
    const { method } = request
    const login = await admit(deps, context, request)
    const { subject } = login
    const second = await secondToken(deps, context, subject, request.bearerTokens)
    if (request.configTypes.length > 0) await deps.configTypes.ready(context)
    const info = clientInfoOf(request)
    const session = await openSession(deps.changeLog.db, {
      ...subject,
      ipAddress: request.ipAddress,
      configTypes: request.configTypes,
      isCertExtendable: method === 'cert' && subject.isIssuedByNetwork,
      certificate: method === 'cert' ? login.certificates[0] : undefined,
      second,
      info,
    })
    if (!session) throw refused(login, method, 'gone meanwhile')
    if (info && session.hasNewInfo) await replaceClientInfo(deps.changeLog, context, subject.identityId, info)
    deps.events?.emit(apiSessionEvent('created', session))
    await deps.credentialFeed.handOver()
    return sessionMessage(session, deps.lifetimes, second)
  }

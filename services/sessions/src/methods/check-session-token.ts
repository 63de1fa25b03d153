import { Fault, type Methods, type SessionsServiceService } from '@overlay/rpc'
import { isAbout, isSigned } from '../domain/session-token.js'
import { findSessionsBy } from '../store/session.js'
import type { Deps } from './method-deps.js'

/** The session of a token that a client presents in place of its id. wire: an invalid token is 401. */
export function checkSessionToken({
  changeLog,
  tokens,
}: Pick<Deps, 'changeLog' | 'tokens'>): Methods<SessionsServiceService>['checkSessionToken'] {
  const [sessionById, sessionByToken] = [
    findSessionsBy(changeLog.db, 'id'),
    findSessionsBy(changeLog.db, 'token'),
  ]
  return async ({ token, serviceId }, { caller }) => {
    const content = isSigned(token) ? await tokens.verify(token) : undefined
    if (isSigned(token) && !content) throw new Fault('UNAUTHORIZED')
    const session = await (content ? sessionById(content.id) : sessionByToken(token))
    // differs: 404 where the session has ended, because clients then create another one
    if (!session || (content && !isAbout(content, session))) throw new Fault('NOT_FOUND')
    if (session.apiSessionId !== caller.apiSessionId || session.serviceId !== serviceId)
      throw new Fault('NOT_FOUND')
    if (content && !tokens.isFresh(content)) throw new Fault('NOT_FOUND')
    return { sessionId: session.id }
  }
}

import { Fault, type Methods, type SessionsServiceService } from '@overlay/rpc'
import { openFindByToken } from '../tokens/find-by-token.js'
import type { Deps } from './method-deps.js'

/** The session of a token that a client presents in place of its id. wire: an invalid token is 401. */
export function checkSessionToken({
  changeLog,
  tokens,
}: Pick<Deps, 'changeLog' | 'tokens'>): Methods<SessionsServiceService>['checkSessionToken'] {
  const findByToken = openFindByToken(changeLog.db, tokens)
  return async ({ token, serviceId }, { caller }) => {
    const found = await findByToken(token)
    if (found === 'invalid') throw new Fault('UNAUTHORIZED')
    // differs: 404 where the session has ended, because clients then create another one
    if (!found) throw new Fault('NOT_FOUND')
    const { session, signed } = found
    if (session.apiSessionId !== caller.apiSessionId || session.serviceId !== serviceId)
      throw new Fault('NOT_FOUND')
    if (signed && !tokens.isFresh(signed)) throw new Fault('NOT_FOUND')
    return { sessionId: session.id }
  }
}

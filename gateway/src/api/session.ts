import { type CachedSession, isCachedSession } from '../cache/session.js'
import type { RequestContext } from '../http/exchange.js'

/** The session of a request to an operation that needs one. */
export function sessionOf(c: RequestContext): CachedSession {
  const session = c.env.session
  if (!session || !isCachedSession(session))
    throw new Error('the operation table admits callers without a session')
  return session
}

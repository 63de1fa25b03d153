import { apiSession, identity, linksOf, referenceTo, timeText } from '@overlay/model'
import type { ApiSession } from '@overlay/rpc'
import { authQueriesOf } from '../domain/auth-queries.js'
import { type Lifetimes, remainingMs } from '../domain/lifetimes.js'
import type { Session } from '../store/api-sessions.js'

/**
 * A session for the caches of gateways. Members that change with each use are not in the JSON: the gateway adds them. It
 * adds the access token, too, which takes the place of the session's own token.
 */
export function sessionMessage(session: Session, lifetimes: Lifetimes): ApiSession {
  const { id, identityId, identityName, authPolicyId } = session
  const isBearer = session.leftMs !== null
  const authQueries = authQueriesOf(session, session.demands)
  const wire = {
    _links: linksOf(apiSession, id),
    createdAt: timeText(session.createdAt),
    id,
    tags: session.tags,
    authQueries,
    authenticatorId: isBearer ? 'oidc' : session.authenticatorId, // wire: for all of them
    configTypes: session.configTypes,
    identity: referenceTo(identity, identityId, identityName, { authPolicyId }),
    identityId,
    ipAddress: session.ipAddress,
    isCertExtendable: session.isCertExtendable,
    isMfaComplete: session.isMfaComplete,
    isMfaRequired: session.isMfaRequired,
    ...(!isBearer && { token: session.token }),
  }
  return {
    id,
    token: isBearer ? '' : session.token,
    identityId,
    identityName,
    isAdmin: session.isAdmin || session.isDefaultAdmin, // wire: a demoted default admin keeps its rights
    isPartial: authQueries.length > 0,
    configTypes: session.configTypes,
    json: Buffer.from(JSON.stringify(wire)),
    createdAtMs: session.createdAt.getTime(),
    lastActivityAtMs: session.lastActivityAt.getTime(),
    timeoutSeconds: lifetimes.timeoutSeconds,
    endsInMs: remainingMs(lifetimes, session.ageMs, session.leftMs),
    position: { timeline: session.timeline, number: session.number },
  }
}

import { apiSession, identity, linksOf, referenceTo, timeText } from '@overlay/model'
import type { ApiSession } from '@overlay/rpc'
import type { FabricEvent, FabricEvents, RowChange } from '@overlay/store/change-log'
import { authQueriesOf } from '../domain/auth-queries.js'
import { type Lifetimes, remainingMs } from '../domain/lifetimes.js'
import { SECOND_TOKEN_MS } from '../limits.js'
import type { SecondToken, Session } from '../store/api-sessions.js'

/**
 * A session for the caches of gateways. Members that change with each use are not in the JSON: the gateway adds them. It
 * adds the access token, too, which replaces the session's own token.
 * @param second the token that this request presents. wire: a client sends it with each request; those of earlier
 *   requests do not count
 */
export const sessionMessage = (session: Session, lifetimes: Lifetimes, second?: SecondToken): ApiSession => ({
  ...messageOf({ ...session, secondSigner: second?.signerId ?? null }, lifetimes),
  secondTokenMs: remainingTokenMs(second),
})

/** The session of access tokens. A token that was presented at the login counts as long as the session. */
export const bearerMessage = (session: Session, lifetimes: Lifetimes): ApiSession =>
  messageOf(session, lifetimes)

function remainingTokenMs(second: SecondToken | undefined): number {
  if (!second) return 0
  return Math.max(
    Math.min(Math.floor((second.untilMs ?? Number.POSITIVE_INFINITY) - Date.now()), SECOND_TOKEN_MS),
    0,
  )
}

function messageOf(session: Session, lifetimes: Lifetimes): ApiSession {
  const { id, identityId, identityName, authPolicyId } = session
  const isBearer = session.leftMs !== null
  const authQueries = authQueriesOf(session, session.demands)
  const wire = {
    _links: linksOf(apiSession, id),
    createdAt: timeText(session.createdAt),
    id,
    tags: session.tags,
    authQueries,
    // wire: it is 'oidc' in all sessions of access tokens
    authenticatorId: isBearer ? 'oidc' : session.authenticatorId,
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
    isAdmin: session.isAdmin || session.isDefaultAdmin, // wire: the default admin has all rights, also with `isAdmin: false`
    isPartial: authQueries.length > 0,
    configTypes: session.configTypes,
    json: Buffer.from(JSON.stringify(wire)),
    createdAtMs: session.createdAt.getTime(),
    lastActivityAtMs: session.lastActivityAt.getTime(),
    timeoutSeconds: lifetimes.timeoutSeconds,
    endsInMs: remainingMs(lifetimes, session.ageMs, session.leftMs),
    position: { timeline: session.timeline, number: session.number },
    demandsToken: session.demands.requireExtJwtSigner !== null,
    secondTokenMs: 0,
  }
}

interface NamedSession {
  readonly id: string
  readonly identityId: string
  readonly ipAddress: string
}

/** differs: without the token, which is a credential. */
export const apiSessionEvent = (
  type: 'created' | 'deleted',
  { id, identityId, ipAddress }: NamedSession,
): FabricEvent => ({
  namespace: 'edge.apiSessions',
  event_type: type,
  id,
  token: '',
  identity_id: identityId,
  ip_address: ipAddress,
})

/** Emits the API sessions that a write has ended. */
export function emitEnded(events: FabricEvents, changes: readonly RowChange[]): void {
  for (const { kind, id, before, after } of changes)
    if (kind === apiSession.kind && before && !after)
      events.emit(apiSessionEvent('deleted', { ...(before as Omit<NamedSession, 'id'>), id }))
}

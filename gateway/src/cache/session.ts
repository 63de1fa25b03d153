import { type ApiSession, goTime, type Position } from '@overlay/rpc'
import type { RequestContext } from '../http/exchange.js'
import { expirationSeconds, type Session } from '../http/session.js'
import type { AccessToken } from './access-token.js'

/** An API session in the memory of this gateway. */
export interface CachedSession extends Session {
  /** Of the access token by which it was found. */
  readonly keyId?: string
  /** The auth policy demands an external token with each request. */
  readonly demandsToken: boolean
  /** When the external token expires with which the session was asked for, by the clock of this gateway. */
  readonly countsUntilMs: number
  readonly createdAtMs: number
  /** Members of the wire shape that do not change with time. */
  readonly json: string
  /** Of schema identity: the session exists at this position, and its data is not older. */
  position: Position | undefined
  /** The last activity that the owner has stored or is about to store. */
  storedActivityMs: number
  /** The last request through this gateway. */
  usedAtMs: number
  expiresAt: string
}

export function cachedSession(session: ApiSession, now: number): CachedSession {
  const { id, identityId, identityName, isAdmin, isPartial, configTypes, timeoutSeconds, json, position } =
    session
  const endsAtMs = session.endsInMs > 0 ? now + session.endsInMs : Number.POSITIVE_INFINITY
  const storedActivityMs = session.lastActivityAtMs
  return {
    id,
    identityId,
    isAdmin,
    isPartial,
    caller: { identityId, identityName, apiSessionId: id, isAdmin, configTypes },
    timeoutSeconds,
    endsAtMs,
    demandsToken: session.demandsToken,
    countsUntilMs: Number.POSITIVE_INFINITY,
    createdAtMs: session.createdAtMs,
    json: json.toString(),
    position,
    storedActivityMs,
    usedAtMs: now,
    expiresAt: goTime(expiresAtMs({ storedActivityMs, timeoutSeconds, endsAtMs })),
  }
}

/** A session as the holder of an access token sees it: it ends with the token. */
export function bearerSession(
  session: ApiSession,
  token: string,
  { keyId, expiresAtMs }: Pick<AccessToken, 'keyId' | 'expiresAtMs'>,
  now: number,
): CachedSession {
  const cached = cachedSession(session, now)
  const endsAtMs = Math.min(cached.endsAtMs, expiresAtMs)
  return {
    ...cached,
    json: JSON.stringify({ ...(JSON.parse(cached.json) as object), token }),
    keyId,
    timeoutSeconds: Number.POSITIVE_INFINITY,
    endsAtMs,
    expiresAt: goTime(endsAtMs),
  }
}

export const isCachedSession = (session: Session): session is CachedSession => 'storedActivityMs' in session

/** Records activity that the owner has stored. */
export function setStoredActivity(session: CachedSession, atMs: number): void {
  if (atMs <= session.storedActivityMs) return
  session.storedActivityMs = atMs
  session.expiresAt = goTime(expiresAtMs(session))
}

/** The session expires when it is unused for its timeout, at the end of its lifetime at the latest. */
const expiresAtMs = ({
  storedActivityMs,
  timeoutSeconds,
  endsAtMs,
}: Pick<CachedSession, 'storedActivityMs' | 'timeoutSeconds' | 'endsAtMs'>): number =>
  Math.min(storedActivityMs + timeoutSeconds * 1000, endsAtMs)

/** The session in wire shape, with the members that change with time. */
export function renderSession(session: CachedSession): object {
  const { json, createdAtMs, storedActivityMs, usedAtMs } = session
  const at = (ms: number): string => new Date(ms).toISOString()
  const moving = {
    updatedAt: at(Math.max(createdAtMs, storedActivityMs)),
    lastActivityAt: at(storedActivityMs),
    cachedLastActivityAt: at(Math.max(usedAtMs, storedActivityMs)),
    expiresAt: at(expiresAtMs(session)),
    expirationSeconds: expirationSeconds(session, usedAtMs),
  }
  return { ...(JSON.parse(json) as object), ...moving }
}

/** The session of a request to an operation that needs one. */
export function sessionOf(c: RequestContext): CachedSession {
  const session = c.env.session
  if (!session || !isCachedSession(session))
    throw new Error('the operation table admits callers without a session')
  return session
}

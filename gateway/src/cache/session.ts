import { type ApiSession, type Caller, goTime, type Position } from '@overlay/rpc'

/** An API session as a gateway remembers it. */
export interface Session {
  readonly id: string
  readonly identityId: string
  readonly identityName: string
  readonly isAdmin: boolean
  /** A second factor is outstanding. */
  readonly isPartial: boolean
  readonly caller: Caller
  readonly timeoutSeconds: number
  /** By the clock of this gateway: when it ends whatever its use. */
  readonly endsAtMs: number
  readonly createdAtMs: number
  /** Members of the wire shape that do not move with time. */
  readonly json: Buffer
  /** Of schema identity: up to here it is known to live, and what is told here is not older. */
  position: Position | undefined
  /** As the owner knows it, or will in a moment. */
  storedActivityMs: number
  /** The last request through this gateway. */
  usedAtMs: number
  /** Header text for `storedActivityMs`. */
  expiry: { readonly storedMs: number; readonly text: string } | undefined
}

export function sessionOf(session: ApiSession, now: number): Session {
  const { id, identityId, identityName, isAdmin, isPartial, configTypes, json, position } = session
  return {
    id,
    identityId,
    identityName,
    isAdmin,
    isPartial,
    caller: { identityId, apiSessionId: id, isAdmin, configTypes },
    timeoutSeconds: session.timeoutSeconds,
    endsAtMs: session.endsInMs > 0 ? now + session.endsInMs : Number.POSITIVE_INFINITY,
    createdAtMs: session.createdAtMs,
    json,
    position,
    storedActivityMs: session.lastActivityAtMs,
    usedAtMs: now,
    expiry: undefined,
  }
}

/** wire: Go's print form of a time, not RFC 3339. */
export function expiryText(session: Session): string {
  const { storedActivityMs, expiry } = session
  if (expiry?.storedMs === storedActivityMs) return expiry.text
  const text = goTime(expiresAtMs(session))
  session.expiry = { storedMs: storedActivityMs, text }
  return text
}

/** After so long without use, or at the end of the lifetime if that is sooner. */
const expiresAtMs = ({ storedActivityMs, timeoutSeconds, endsAtMs }: Session): number =>
  Math.min(storedActivityMs + timeoutSeconds * 1000, endsAtMs)

/** The session in wire shape: what moves with time is added to what does not. */
export function sessionJson(session: Session): string {
  const { json, createdAtMs, storedActivityMs, usedAtMs, timeoutSeconds } = session
  const at = (ms: number): string => new Date(ms).toISOString()
  const moving = {
    updatedAt: at(Math.max(createdAtMs, storedActivityMs)),
    lastActivityAt: at(storedActivityMs),
    cachedLastActivityAt: at(Math.max(usedAtMs, storedActivityMs)),
    expiresAt: at(expiresAtMs(session)),
    expirationSeconds: timeoutSeconds,
  }
  return `${json.toString().trimEnd().slice(0, -1)},${JSON.stringify(moving).slice(1)}`
}

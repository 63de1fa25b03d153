import { type Caller, Fault } from '@overlay/rpc'
import type { Credentials } from './credentials.js'

/** An API session, as far as the pipeline needs it. */
export interface Session {
  readonly id: string
  readonly identityId: string
  readonly isAdmin: boolean
  /** A second factor is outstanding. */
  readonly isPartial: boolean
  readonly caller: Caller
  /** Infinite: it ends at its end alone. */
  readonly timeoutSeconds: number
  /** When it ends whatever its use, by the clock of this gateway. */
  readonly endsAtMs: number
  /** wire: Go's print form of a time, not RFC 3339. */
  readonly expiresAt: string
}

/** Where the pipeline finds API sessions. */
export interface SessionStore {
  /** A cached session is returned at once. Throws, or rejects with, the fault that refuses the credentials. */
  find(credentials: Credentials): Session | Promise<Session>
  /** Only what is cached: no call to the owner. */
  cached(credentials: Credentials): Session | undefined
}

/** wire: with this cause where there is no token of a stored session, or an access token beside it. */
export const unauthenticated = (cause?: unknown): Fault =>
  new Fault('UNAUTHORIZED', 'unauthenticated for invalid credentials', cause)

/** Until a session ends if it is not used from now on. */
export const expirationSeconds = (
  { timeoutSeconds, endsAtMs }: Pick<Session, 'timeoutSeconds' | 'endsAtMs'>,
  now = Date.now(),
): number =>
  Number.isFinite(timeoutSeconds) ? timeoutSeconds : Math.max(0, Math.floor((endsAtMs - now) / 1000))

/** What sessions are found by: answers depend on it. */
export const CREDENTIAL_HEADERS = 'zt-session, authorization'

import type { Caller } from '@overlay/rpc'
import type { RequestContext } from './request-context.js'

/** An API session, as far as the pipeline needs it. */
export interface Session {
  readonly id: string
  readonly identityId: string
  readonly isAdmin: boolean
  /** A second factor is outstanding. */
  readonly isPartial: boolean
  readonly caller: Caller
  readonly timeoutSeconds: number
  /** wire: Go's print form of a time, not RFC 3339. */
  readonly expiresAt: string
}

/** Where the pipeline finds API sessions. */
export interface SessionStore {
  /** A cached session is returned at once. Throws, or rejects with, the fault that refuses the token. */
  find(token: string): Session | Promise<Session>
  /** Only what is cached: no call to the owner. */
  cached(token: string): Session | undefined
}

/** wire: on every answer to a valid session. differs: a cache must not show it to others. */
export function setExpiry(
  { env: { outgoing } }: RequestContext,
  { timeoutSeconds, expiresAt }: Session,
): void {
  outgoing.setHeader('expiration-seconds', timeoutSeconds)
  outgoing.setHeader('expires-at', expiresAt)
  outgoing.setHeader('vary', 'zt-session')
}

import type { IncomingMessage } from 'node:http'
import { type Caller, Fault } from '@overlay/rpc'
import { MAX_TOKEN_CHARACTERS } from '@overlay/x509'
import { MAX_BEARERS, MAX_HEADERS } from '../limits.js'

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
  /** wire: Go's print form of a time, as `2026-01-01 00:01:00 +0000 UTC`, not RFC 3339. */
  readonly expiresAt: string
}

/** Where the pipeline finds API sessions. */
export interface SessionStore {
  /** A cached session is returned at once. Throws, or rejects with, the fault that refuses the credentials. */
  find(credentials: Credentials): Session | Promise<Session>
  /** Only what is cached: no call to the owner. */
  cached(credentials: Credentials): Session | undefined
}

/** wire: with this cause where there is no token of a stored session, or an access token besides it. */
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

/** What a request presents. */
export interface Credentials {
  /** Of a stored session; empty: none. It decides alone. */
  readonly token: string
  /** Those of the `authorization` headers. */
  readonly bearers: readonly string[]
}

/** wire: with one space. differs: in any case (RFC 9110, 11.1). */
const BEARER = /^bearer /i
const HEADER = 'authorization'
const none: readonly string[] = []

/** @throws Fault HEADERS_TOO_LARGE, also where headers are left out: they may be credentials */
export function credentialsOf({ headers, rawHeaders }: IncomingMessage): Credentials {
  if (rawHeaders.length >= 2 * MAX_HEADERS)
    throw new Fault('HEADERS_TOO_LARGE', `there are ${MAX_HEADERS} headers or more`)
  const { 'zt-session': token, authorization } = headers
  return {
    token: typeof token === 'string' ? token : '',
    bearers: authorization === undefined ? none : bearersIn(rawHeaders),
  }
}

/** node merges headers of one name into the first, so this reads them as they were sent. */
function bearersIn(rawHeaders: readonly string[]): readonly string[] {
  const bearers: string[] = []
  for (let i = 0; i < rawHeaders.length && bearers.length < MAX_BEARERS; i += 2) {
    const value = rawHeaders[i + 1] ?? ''
    if (BEARER.test(value) && rawHeaders[i]?.toLowerCase() === HEADER)
      bearers.push(checkLength(value.slice('Bearer '.length)))
  }
  return bearers
}

/** A client learns that its token is too long, instead of an answer as to a wrong one. */
function checkLength(token: string): string {
  if (token.length <= MAX_TOKEN_CHARACTERS) return token
  throw new Fault('HEADERS_TOO_LARGE', `a token has more than ${MAX_TOKEN_CHARACTERS} characters`)
}

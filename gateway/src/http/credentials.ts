import type { IncomingMessage } from 'node:http'
import { Fault } from '@overlay/rpc'
import { MAX_TOKEN_CHARACTERS } from '@overlay/x509'

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
const MAX_BEARERS = 4
/** node leaves out the others, which would take several times their size in memory. */
export const MAX_HEADERS = 256
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

/** A client learns that its token is too long, which would otherwise look like a wrong one. */
function checkLength(token: string): string {
  if (token.length <= MAX_TOKEN_CHARACTERS) return token
  throw new Fault('HEADERS_TOO_LARGE', `a token has more than ${MAX_TOKEN_CHARACTERS} characters`)
}

import type { IncomingMessage } from 'node:http'

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
const none: readonly string[] = []

export function credentialsOf({ headers, rawHeaders }: IncomingMessage): Credentials {
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
      bearers.push(value.slice('Bearer '.length))
  }
  return bearers
}

import { expect, test } from 'vitest'
import {
  decodeApiSessions,
  decodeRevocation,
  fingerprintsAt,
  hasLimited,
  withoutExpired,
} from './api-session.js'

const payload = {
  id: 'id',
  token: 'token',
  accessTokens: [],
  identityId: 'alice',
  fingerprints: [],
  expiring: [],
}
const decodeAll = (more: object = {}) =>
  decodeApiSessions(Buffer.from(JSON.stringify({ ...payload, ...more })))
const decoded = (more: object = {}) => {
  const [session] = decodeAll(more)
  if (!session) throw new Error('no API session')
  return session
}
const own = (fingerprint: string, validToMs: number) => ({ fingerprint, validToMs })

test('an API session without certificates has no fingerprints', () => {
  const session = decoded()
  expect(fingerprintsAt(session, 0)).toEqual([])
  expect([hasLimited(session), withoutExpired(session, 0)]).toEqual([false, ''])
})

test('a fingerprint counts until its certificate expires', () => {
  const session = decoded({ fingerprints: ['a'], expiring: [own('b', 10), own('c', 20)] })
  expect(fingerprintsAt(session, 9)).toEqual(['a', 'b', 'c'])
  expect(fingerprintsAt(session, 10)).toEqual(['a', 'c'])
  expect(withoutExpired(session, 10)).toBe('a c@20')
  expect(withoutExpired(session, 20)).toBe('a')
})

test('a certificate of the identity counts without limit, also if it was presented at the login', () => {
  const session = decoded({ fingerprints: ['a', 'b', 'a'], expiring: [own('a', 10)] })
  expect(session.fingerprints).toBe('a b')
  expect(hasLimited(session)).toBe(false)
})

test('the order of fingerprints does not matter', () => {
  expect(decoded({ fingerprints: ['b', 'a'] }).fingerprints).toBe(
    decoded({ fingerprints: ['a', 'b'] }).fingerprints,
  )
})

test('an API session of access tokens is one for each of them', () => {
  const accessTokens = [
    { id: '1', token: 'first' },
    { id: '2', token: 'second' },
  ]
  const common = { id: 'id', identityId: 'alice', fingerprints: 'a' }
  expect(decodeAll({ token: null, accessTokens, fingerprints: ['a'] })).toMatchObject([
    { ...common, token: 'first', tokenId: '1' },
    { ...common, token: 'second', tokenId: '2' },
  ])
  expect(decodeAll({ token: null })).toEqual([])
  expect(decoded({ accessTokens: undefined })).toMatchObject({ token: 'token', tokenId: undefined })
})

test('an API session without a token is refused', () => {
  expect(() => decoded({ token: undefined })).toThrow('without')
})

test('a revocation is no API session', () => {
  const revoked = { ...payload, token: null, revokedUntilMs: 5 }
  const json = Buffer.from(JSON.stringify(revoked))
  expect(decodeRevocation(json)).toEqual({ identityId: 'alice', untilMs: 5 })
  expect(decodeApiSessions(json)).toEqual([])
  expect(decodeRevocation(Buffer.from(JSON.stringify(payload)))).toBeUndefined()
})

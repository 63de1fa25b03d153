import { expect, test } from 'vitest'
import { decodeApiSession, fingerprintsAt, hasLimited, withoutExpired } from './api-session.js'

const decoded = (more: object = {}) =>
  decodeApiSession(
    Buffer.from(
      JSON.stringify({
        id: 'id',
        token: 'token',
        identityId: 'alice',
        fingerprints: [],
        expiring: [],
        ...more,
      }),
    ),
  )
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

test('an API session without a token is refused', () => {
  expect(() => decoded({ token: undefined })).toThrow('without')
})

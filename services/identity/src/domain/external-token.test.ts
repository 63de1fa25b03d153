import { generateKeyPairSync, type KeyObject } from 'node:crypto'
import { anything, assert, property, string } from 'fast-check'
import { expect, test } from 'vitest'
import { algorithmsOf, headOf, keyFor, subjectIn, TokenError } from './external-token.js'

const part = (value: unknown): string => Buffer.from(JSON.stringify(value) ?? '').toString('base64url')
const compact = (header: unknown, payload: unknown): string => `${part(header)}.${part(payload)}.c2ln`

/** The reason of the refusal. Fails if there is none, or another error. */
function refusalOf(token: string): string {
  try {
    headOf(token)
  } catch (err) {
    if (err instanceof TokenError) return err.reason
    throw err
  }
  return 'accepted'
}

const good = { header: { alg: 'ES256', kid: 'k' }, payload: { iss: 'i' } }

test('a token of an allowed algorithm is read', () => {
  const head = { algorithm: 'ES256', kid: 'k', issuer: 'i' }
  expect(headOf(compact(good.header, good.payload))).toEqual(head)
})

test.each([
  ['algorithm', { alg: 'HS256', kid: 'k' }, { iss: 'i' }, 'unsafe token'],
  ['key id', { alg: 'ES256' }, { iss: 'i' }, 'malformed token'],
  ['issuer', good.header, {}, 'malformed token'],
  ['issuer, which is half a character,', good.header, { iss: '\ud800' }, 'malformed token'],
])('a token without a usable %s is refused', (_what, header, payload, reason) => {
  expect(refusalOf(compact(header, payload))).toBe(reason)
})

test('a claim is the name of an identity only if it is a text of the top level', () => {
  expect(subjectIn({ email: 'a@b' }, 'email')).toBe('a@b')
  void assert(
    property(string(), anything(), (name, value) => {
      if (typeof value === 'string') return
      expect(() => subjectIn({ [name]: value }, name)).toThrow(TokenError)
    }),
  )
  for (const name of ['toString', '__proto__', 'a.b'])
    expect(() => subjectIn({ a: { b: 'x' } }, name)).toThrow(TokenError)
})

test.each([
  ['rsa', generateKeyPairSync('rsa', { modulusLength: 2048 }), 'RS256'],
  ['P-256', generateKeyPairSync('ec', { namedCurve: 'P-256' }), 'ES256'],
  ['P-384', generateKeyPairSync('ec', { namedCurve: 'P-384' }), 'ES384'],
  ['P-521', generateKeyPairSync('ec', { namedCurve: 'P-521' }), 'ES512'],
  ['ed25519', generateKeyPairSync('ed25519'), 'EdDSA'],
  ['secp256k1', generateKeyPairSync('ec', { namedCurve: 'secp256k1' }), undefined],
] as const)('a key of type %s verifies its own algorithms only', (_type, { publicKey }, first) => {
  const allowed = algorithmsOf(publicKey)
  expect(allowed[0]).toBe(first)
  expect(allowed.every((one) => one.slice(0, 2) === first?.slice(0, 2) || /^(PS|Ed)/.test(one))).toBe(true)
})

test('a key is used for the algorithms that its issuer names', () => {
  const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 }).publicKey
  const ec = generateKeyPairSync('ec', { namedCurve: 'P-256' }).publicKey
  const of = (key: KeyObject, alg?: string) => ({ key, alg })
  expect(keyFor('RS256', [of(rsa)])).toBe(rsa)
  expect(keyFor('RS256', [of(rsa, 'PS256')])).toBeUndefined()
  expect(keyFor('RS256', [of(rsa, 'PS256'), of(rsa, 'RS256')])).toBe(rsa)
  expect(keyFor('ES256', [of(rsa), of(ec)])).toBe(ec)
  expect(keyFor('ES256', [of(rsa, 'ES256')])).toBeUndefined()
})

test.each([
  ['EdDSA', 'Ed25519'],
  ['Ed25519', 'EdDSA'],
] as const)('a key for %s is used for %s, which is the same', (alg, algorithm) => {
  const key = generateKeyPairSync('ed25519').publicKey
  expect(keyFor(algorithm, [{ key, alg }])).toBe(key)
})

import { generateKeyPairSync, type KeyObject } from 'node:crypto'
import { assert, constantFrom, dictionary, jsonValue, property, record, string } from 'fast-check'
import { expect, test } from 'vitest'
import { KeySetError, keysIn, keysOf } from './published-keys.js'

const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
const other = generateKeyPairSync('ec', { namedCurve: 'P-256' }).publicKey
const jwk = (key: KeyObject = publicKey) => ({ ...key.export({ format: 'jwk' }), kid: 'a' })
const setOf = (...keys: object[]): string => JSON.stringify({ keys })
const kidsIn = (json: string): string[] => Object.keys(keysIn(json).keys)
const none = { spki: '' }
const [rsa, otherRsa] = [1, 2].map(() => generateKeyPairSync('rsa', { modulusLength: 2048 }).publicKey) as [
  KeyObject,
  KeyObject,
]
const spki = publicKey.export({ format: 'der', type: 'spki' }).toString('base64')

test('keys are read by their names', () => {
  expect(keysIn(setOf({ ...jwk(), alg: 'ES256', use: 'sig' }))).toEqual({
    keys: { a: { spki, alg: 'ES256' } },
    unusable: [],
  })
})

test('of a private key only the public part is kept', () => {
  expect(keysIn(setOf(jwk(privateKey))).keys).toEqual({ a: { spki } })
})

test.each([
  ['for encryption', { ...jwk(), use: 'enc' }, /use is not sig/],
  ['for other operations', { ...jwk(), key_ops: ['encrypt'] }, /key_ops/],
  ['without a name', { ...jwk(), kid: undefined }, /kid/],
  ['with a name that is no text', { ...jwk(), kid: 1 }, /kid/],
  ['of symmetric type', { kty: 'oct', k: 'c2VjcmV0', kid: 'a' }, /no public key/],
  ['for an algorithm that does not fit it', { ...jwk(), alg: 'RSA-OAEP' }, /alg/],
  ['for an algorithm that is no text', { ...jwk(), alg: 1 }, /alg/],
  [
    'that is short',
    { ...generateKeyPairSync('rsa', { modulusLength: 1024 }).publicKey.export({ format: 'jwk' }), kid: 'a' },
    /RSA/,
  ],
  ['with a certificate that cannot be read', { kid: 'a', kty: 'EC', x5c: ['AAAA'] }, /./],
  ['off its curve', { ...jwk(), x: jwk().y }, /./],
])('a key %s is left out with the reason, and others stay', (_what, key, reason) => {
  const { keys, unusable } = keysIn(setOf(key, { ...jwk(), kid: 'good' }))
  expect(Object.keys(keys)).toEqual(['good'])
  expect(unusable).toEqual([
    { kid: typeof key.kid === 'string' ? key.kid : '', reason: expect.stringMatching(reason) },
  ])
})

test.each([[null], [''], [[]]])('members that are %j are as good as absent', (nothing) => {
  const names = ['use', 'alg', 'key_ops', 'x5c', 'x5t', 'oth']
  const empty = Object.fromEntries(names.map((name) => [name, nothing]))
  expect(keysIn(setOf({ ...jwk(), ...empty }))).toEqual({ keys: { a: { spki } }, unusable: [] })
})

test('a name of one key for several algorithms means the key for each of them', () => {
  const key = jwk(rsa)
  const text = setOf({ ...key, alg: 'RS256' }, { ...key, alg: 'PS256' }, { ...key, alg: 'RS256' })
  expect(keysOf(keysIn(text).keys.a ?? none).map(({ alg }) => alg)).toEqual(['RS256', 'PS256'])
})

test('a name of several keys for different algorithms means the one for the algorithm', () => {
  for (const keys of [
    [jwk(rsa), jwk()],
    [
      { ...jwk(rsa), alg: 'RS256' },
      { ...jwk(otherRsa), alg: 'PS256' },
    ],
  ])
    expect(keysOf(keysIn(setOf(...keys)).keys.a ?? none)).toHaveLength(2)
  expect(kidsIn(setOf({ ...jwk(rsa), alg: 'RS256' }, jwk(otherRsa)))).toEqual([])
})

test('of a key set only what is ambiguous is left out', () => {
  const { keys, unusable } = keysIn(setOf(jwk(), jwk(other), jwk(rsa)))
  expect(keysOf(keys.a ?? none)).toHaveLength(1)
  expect(unusable).toEqual([{ kid: 'a', reason: expect.stringContaining('several keys') }])
})

test('a name of two keys means neither, a key that is repeated counts once', () => {
  expect(kidsIn(setOf(jwk(), jwk(other)))).toEqual([])
  expect(kidsIn(setOf(jwk(), jwk(other), jwk()))).toEqual([])
  expect(kidsIn(setOf(jwk(), jwk()))).toEqual(['a'])
})

test('names that objects have are ordinary names', () => {
  expect(kidsIn(setOf({ ...jwk(), kid: '__proto__' }, { ...jwk(), kid: 'toString' }))).toEqual([
    '__proto__',
    'toString',
  ])
})

test('random documents yield no key, or are no set', () => {
  const tryRead = (json: string): void => {
    try {
      expect(keysIn(json).keys).toEqual({})
    } catch (err) {
      if (!(err instanceof KeySetError)) throw err
    }
  }
  void assert(property(string({ unit: 'binary' }), tryRead))
  void assert(property(jsonValue(), (value) => tryRead(JSON.stringify(value))))
  const names = constantFrom('kty', 'kid', 'n', 'e', 'crv', 'x', 'y', 'x5c', 'use', 'alg', 'key_ops')
  void assert(
    property(dictionary(names, jsonValue()), record({ kty: constantFrom('RSA', 'EC', 'OKP') }), (key, type) =>
      tryRead(setOf({ kid: 'a', ...key, ...type })),
    ),
  )
  const text = setOf(jwk())
  for (let length = 0; length < text.length; length++) tryRead(text.slice(0, length))
})

test('more than a hundred keys are no set', () => {
  expect(() => keysIn(setOf(...Array(101).fill(jwk())))).toThrow(KeySetError)
})

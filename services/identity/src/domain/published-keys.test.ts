import { generateKeyPairSync, type KeyObject } from 'node:crypto'
import { assert, constantFrom, dictionary, jsonValue, property, record, string } from 'fast-check'
import { expect, test } from 'vitest'
import { KeySetError, keysIn } from './published-keys.js'

const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
const other = generateKeyPairSync('ec', { namedCurve: 'P-256' }).publicKey
const jwk = (key: KeyObject = publicKey) => ({ ...key.export({ format: 'jwk' }), kid: 'a' })
const setOf = (...keys: object[]): string => JSON.stringify({ keys })
const kidsIn = (json: string): string[] => Object.keys(keysIn(json))
const spki = publicKey.export({ format: 'der', type: 'spki' }).toString('base64')

test('keys are read by their names', () => {
  expect(keysIn(setOf({ ...jwk(), alg: 'ES256', use: 'sig' }))).toEqual({ a: { spki, alg: 'ES256' } })
})

test('of a private key only the public part is kept', () => {
  expect(keysIn(setOf(jwk(privateKey)))).toEqual({ a: { spki } })
})

test.each([
  ['for encryption', { ...jwk(), use: 'enc' }],
  ['for other operations', { ...jwk(), key_ops: ['encrypt'] }],
  ['without a name', { ...jwk(), kid: undefined }],
  ['with a name that is no text', { ...jwk(), kid: 1 }],
  ['of symmetric type', { kty: 'oct', k: 'c2VjcmV0', kid: 'a' }],
  [
    'that is short',
    { ...generateKeyPairSync('rsa', { modulusLength: 1024 }).publicKey.export({ format: 'jwk' }), kid: 'a' },
  ],
  ['with a certificate that cannot be read', { kid: 'a', kty: 'EC', x5c: ['AAAA'] }],
  ['off its curve', { ...jwk(), x: jwk().y }],
])('a key %s is left out, and others stay', (_what, key) => {
  expect(kidsIn(setOf(key, { ...jwk(), kid: 'good' }))).toEqual(['good'])
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
      expect(keysIn(json)).toEqual({})
    } catch (err) {
      if (!(err instanceof KeySetError)) throw err
    }
  }
  assert(property(string({ unit: 'binary' }), tryRead))
  assert(property(jsonValue(), (value) => tryRead(JSON.stringify(value))))
  const names = constantFrom('kty', 'kid', 'n', 'e', 'crv', 'x', 'y', 'x5c', 'use', 'alg', 'key_ops')
  assert(
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

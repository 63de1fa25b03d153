import { generateKeyPairSync } from 'node:crypto'
import {
  anything,
  assert,
  constantFrom,
  dictionary,
  jsonValue,
  property,
  string,
  tuple,
  uint8Array,
} from 'fast-check'
import { expect, test } from 'vitest'
import { algorithmsOf, headOf, subjectIn, TokenError } from './external-token.js'

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

test.each(['none', 'None', 'HS256', 'HS512', 'ES256K', 'RSA-OAEP', '', null, 1, ['ES256']])(
  'algorithm %j is refused',
  (alg) => {
    expect(refusalOf(compact({ ...good.header, alg }, good.payload))).toBe('unsafe token')
  },
)

test.each(['jwk', 'jku', 'x5c', 'x5u', 'crit'])(
  'member %s of the header is refused, whatever it is',
  (name) => {
    assert(
      property(jsonValue(), (value) => {
        const token = compact({ ...good.header, [name]: value }, good.payload)
        expect(refusalOf(token)).toBe('unsafe token')
      }),
    )
  },
)

test('random text is never accepted, and never another error', () => {
  const texts = [
    string(),
    string({ unit: 'binary' }),
    uint8Array().map((bytes) => Buffer.from(bytes).toString('latin1')),
  ]
  const parts = tuple(...texts.map((text) => text.map((one) => Buffer.from(one).toString('base64url'))))
  assert(property(parts, (one) => void expect(refusalOf(one.join('.'))).toBe('malformed token')))
  for (const text of texts)
    assert(property(text, (one) => void expect(refusalOf(one)).toBe('malformed token')))
})

test('random members are refused unless all of them are right', () => {
  const value = jsonValue()
  assert(
    property(
      dictionary(constantFrom('alg', 'kid', 'typ', 'crit', '__proto__', 'iss'), value),
      value,
      (header, payload) => {
        expect(refusalOf(compact(header, payload))).not.toBe('accepted')
      },
    ),
  )
})

test('a token that is cut is never accepted for more than it says', () => {
  const token = compact(good.header, good.payload)
  const [head = '', payload = ''] = token.split('.')
  for (let length = 0; length <= head.length + payload.length + 1; length++)
    expect(refusalOf(token.slice(0, length))).toBe('malformed token')
})

test.each([
  ['long', `${compact(good.header, good.payload)}${'A'.repeat(20_000)}`],
  ['deep', compact(good.header, JSON.parse(`${'['.repeat(4000)}${']'.repeat(4000)}`))],
  ['encrypted', 'e30.e30.e30.e30.e30'],
  ['an array', compact([], good.payload)],
  ['of an endless name', compact({ ...good.header, kid: 'k'.repeat(1001) }, good.payload)],
  ['of a name with a control character', compact({ ...good.header, kid: 'a\u0000' }, good.payload)],
  ['of half a character', compact(good.header, { iss: '\ud800' })],
  ['padded', `${Buffer.from('{"alg":"ES256","kid":"k"}').toString('base64')}=.e30.e30`],
])('a token that is %s is refused', (_what, token) => {
  expect(refusalOf(token)).toBe('malformed token')
})

test('of a member that occurs twice the last one counts, as for the signature', () => {
  const twice = Buffer.from('{"alg":"ES256","alg":"none","kid":"k"}').toString('base64url')
  expect(refusalOf(`${twice}.${part(good.payload)}.c2ln`)).toBe('unsafe token')
})

test('a claim is the name of an identity only if it is a text of the top level', () => {
  expect(subjectIn({ email: 'a@b' }, 'email')).toBe('a@b')
  assert(
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

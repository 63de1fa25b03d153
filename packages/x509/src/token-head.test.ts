import { assert, constantFrom, dictionary, jsonValue, property, string, tuple, uint8Array } from 'fast-check'
import { expect, test } from 'vitest'
import { MAX_TOKEN_CHARACTERS } from './limits.js'
import { readTokenHead, TokenHeadError } from './token-head.js'

const part = (value: unknown): string => Buffer.from(JSON.stringify(value) ?? '').toString('base64url')
const compact = (header: unknown, payload: unknown): string => `${part(header)}.${part(payload)}.c2ln`
const algorithms = ['RS256', 'ES256'] as const

/** The reason of the refusal. Fails if there is none, or another error. */
function refusalOf(token: string): string {
  try {
    readTokenHead(token, algorithms)
  } catch (err) {
    if (err instanceof TokenHeadError) return err.reason
    throw err
  }
  return 'accepted'
}

const good = { header: { alg: 'ES256', kid: 'k' }, payload: { iss: 'i' } }

test('a token of an allowed algorithm is read', () => {
  expect(readTokenHead(compact(good.header, good.payload), algorithms)).toEqual({
    algorithm: 'ES256',
    kid: 'k',
    claims: { iss: 'i' },
  })
})

test.each(['none', 'None', 'HS256', 'HS512', 'ES256K', 'RSA-OAEP', '', null, 1, ['ES256']])(
  'algorithm %j is refused',
  (alg) => {
    expect(refusalOf(compact({ ...good.header, alg }, good.payload))).toBe('unsafe')
  },
)

test.each(['jwk', 'jku', 'x5c', 'x5u', 'crit', 'b64', 'enc', 'zip'])(
  'member %s of the header is refused, whatever it is',
  (name) => {
    void assert(
      property(jsonValue(), (value) => {
        const token = compact({ ...good.header, [name]: value }, good.payload)
        expect(refusalOf(token)).toBe('unsafe')
      }),
      { numRuns: 10 },
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
  void assert(property(parts, (one) => void expect(refusalOf(one.join('.'))).toBe('malformed')))
  for (const text of texts)
    void assert(property(text, (one) => void expect(refusalOf(one)).toBe('malformed')))
})

test('random members are refused unless all of them are right', () => {
  const value = jsonValue()
  void assert(
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
    expect(refusalOf(token.slice(0, length))).toBe('malformed')
})

test.each<[string, string, string?]>([
  ['long', `${compact(good.header, good.payload)}${'A'.repeat(MAX_TOKEN_CHARACTERS)}`, 'too long'],
  ['deep', compact(good.header, JSON.parse(`${'['.repeat(4000)}${']'.repeat(4000)}`))],
  ['encrypted', 'e30.e30.e30.e30.e30'],
  ['an array', compact([], good.payload)],
  ['of an endless name', compact({ ...good.header, kid: 'k'.repeat(1001) }, good.payload)],
  ['of a name with a control character', compact({ ...good.header, kid: 'a\u0000' }, good.payload)],
  ['of half a character', compact({ ...good.header, kid: '\ud800' }, good.payload)],
  ['padded', `${Buffer.from('{"alg":"ES256","kid":"k"}').toString('base64')}=.e30.e30`],
])('a token that is %s is refused', (_what, token, reason = 'malformed') => {
  expect(refusalOf(token)).toBe(reason)
})

test('of a member that occurs twice the last one counts, as for the signature', () => {
  const twice = Buffer.from('{"alg":"ES256","alg":"none","kid":"k"}').toString('base64url')
  expect(refusalOf(`${twice}.${part(good.payload)}.c2ln`)).toBe('unsafe')
})

test('a token of the greatest length is read', () => {
  const [header = '', payload = ''] = compact(good.header, good.payload).split('.')
  const signature = 'A'.repeat(MAX_TOKEN_CHARACTERS - header.length - payload.length - 2)
  expect(refusalOf(`${header}.${payload}.${signature}`)).toBe('accepted')
  expect(refusalOf(`${header}.${payload}.${signature}A`)).toBe('too long')
})

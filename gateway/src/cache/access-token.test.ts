import { createHmac, generateKeyPairSync, type KeyObject, sign } from 'node:crypto'
import { newTokenKey, signToken } from '@overlay/process/tokens/testing'
import {
  assert,
  asyncProperty,
  constantFrom,
  dictionary,
  integer,
  jsonValue,
  oneof,
  string,
} from 'fast-check'
import { expect, test } from 'vitest'
import { accessClaims, ISSUER } from '../../testing/tokens.js'
import { RefusedToken, verifyAccessToken } from './access-token.js'

const T0 = Date.UTC(2026, 0, 1)
const key = newTokenKey('k1')
const server = newTokenKey('server') // in the document, but not among the keys of tokens
const published = new Map([[key.id, key.publicKey]])
const asked: string[] = []

const verify = (token: string, now = T0) => {
  asked.length = 0
  const keyOf = (id: string): KeyObject | undefined => {
    asked.push(id)
    return published.get(id)
  }
  return verifyAccessToken(token, { issuer: ISSUER, keyOf, now: () => now })
}
const reasonOf = (token: string, now?: number): Promise<string> =>
  verify(token, now).then(
    () => 'none',
    (err: unknown) => {
      if (err instanceof RefusedToken) return err.reason
      throw err
    },
  )

const claims = accessClaims(T0)
const good = signToken(key, claims)
const [head = '', body = '', signature = ''] = good.split('.')
const encode = (part: unknown): string => Buffer.from(JSON.stringify(part)).toString('base64url')

/** With the public key as the secret. */
function hmacToken(): string {
  const input = `${encode({ alg: 'HS256', typ: 'JWT', kid: key.id })}.${body}`
  const secret = key.publicKey.export({ type: 'spki', format: 'pem' })
  return `${input}.${createHmac('sha256', secret).update(input).digest('base64url')}`
}

function ecToken(): string {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const input = `${encode({ alg: 'ES256', typ: 'JWT', kid: key.id })}.${body}`
  const signature = sign('sha256', Buffer.from(input), { key: privateKey, dsaEncoding: 'ieee-p1363' })
  return `${input}.${signature.toString('base64url')}`
}

test('an access token of this network is accepted', async () => {
  expect(await verify(good)).toEqual({
    apiSessionId: 's-alice',
    identityId: 'i-alice',
    keyId: 'k1',
    expiresAtMs: T0 + 1800_000,
  })
  expect(await reasonOf(signToken(key, { ...claims, aud: ['openziti'] }))).toBe('none')
})

test.each([
  ['nothing', ''],
  ['text', 'x'],
  ['too few parts', `${head}.${body}`],
  ['too many parts', `${good}.x`],
  ['no signature', `${head}.${body}.`],
  ['algorithm none', `${encode({ alg: 'none', typ: 'JWT', kid: 'k1' })}.${body}.`],
  [
    'algorithm none with a signature',
    `${encode({ alg: 'none', typ: 'JWT', kid: 'k1' })}.${body}.${signature}`,
  ],
  ['HS256 with the public key', hmacToken()],
  ['ES256', ecToken()],
  ['PS256', signToken(key, claims, { alg: 'PS256' })],
  ['RS512', signToken(key, claims, { alg: 'RS512' })],
  ['no key id', signToken(key, claims, { kid: undefined })],
  ['a key id that is no text', signToken(key, claims, { kid: ['k1'] })],
  ['a long key id', signToken(key, claims, { kid: 'k'.repeat(1001) })],
  ['an embedded key', signToken(key, claims, { jwk: key.publicKey.export({ format: 'jwk' }) })],
  ['the address of a key', signToken(key, claims, { jku: 'https://localhost/keys' })],
  ['the address of a certificate', signToken(key, claims, { x5u: 'https://localhost/c' })],
  ['an embedded certificate', signToken(key, claims, { x5c: ['MA=='] })],
  ['a critical member', signToken(key, claims, { crit: ['exp'], exp: 1 })],
  ['the critical member b64', signToken(key, claims, { crit: ['b64'], b64: true })],
])('%s is refused before a key is looked at', async (_what, token) => {
  expect(await reasonOf(token)).toBe('header')
  expect(asked).toEqual([])
})

test('a token that is too large is refused before it is read', async () => {
  expect(await reasonOf(signToken(key, { ...claims, z_env: 'x'.repeat(65_536) }))).toBe('size')
  expect(asked).toEqual([])
})

test.each([
  ['a key that is not published', signToken(newTokenKey('k2'), claims), 'key'],
  ['the key of the gateways', signToken(server, claims), 'key'],
  ['another key under a published key id', signToken(newTokenKey('k1'), claims), 'signature'],
  [
    'another signature',
    `${head}.${body}.${signToken(key, { ...claims, sub: 'x' }).split('.')[2]}`,
    'signature',
  ],
  ['another content', `${head}.${encode({ ...claims, sub: 'i-admin' })}.${signature}`, 'signature'],
])('a token signed with %s is refused', async (_what, token, reason) => {
  expect(await reasonOf(token)).toBe(reason)
})

test.each([
  ['another issuer', { iss: 'https://other:1280/oidc' }],
  ['a prefix of the issuer', { iss: 'https://localhost:1280' }],
  ['issuers', { iss: [ISSUER] }],
  ['another audience', { aud: ['someone'] }],
  ['no audience', { aud: [] }],
  ['a refresh token', { z_t: 'r' }],
  ['an id token', { z_t: undefined }],
  ['a token for a service', { z_t: 's' }],
  ['types', { z_t: ['a'] }],
  ['no session', { z_asid: undefined }],
  ['a session that is no text', { z_asid: { id: 's-alice' } }],
  ['no subject', { sub: undefined }],
  ['a subject that is no text', { sub: 7 }],
  ['no end', { exp: undefined }],
  ['an end that is no number', { exp: '2000000000' }],
  ['no begin', { nbf: undefined }],
  ['a begin in two minutes', { nbf: T0 / 1000 + 120 }],
  ['no type', {}, { typ: undefined }],
  ['another type', {}, { typ: 'at+jwt' }],
])('%s is refused though the signature is valid', async (_what, more, header?) => {
  expect(await reasonOf(signToken(key, { ...claims, ...more }, header))).toBe('claims')
})

test('a token is valid until its end, and somewhat before its begin for clocks that are slow', async () => {
  expect(await reasonOf(good, T0 - 60_000)).toBe('none')
  expect(await reasonOf(good, T0 - 61_000)).toBe('claims')
  expect(await reasonOf(good, T0 + 1799_999)).toBe('none')
  expect(await reasonOf(good, T0 + 1800_000)).toBe('expired')
  expect(await reasonOf(good, T0 + 18_000_000)).toBe('expired')
})

const texts = oneof(string(), string({ unit: 'binary' }), constantFrom(head, body, signature, '.', '='))

test('no text is accepted or causes another error than a refusal', async () => {
  await assert(
    asyncProperty(texts, texts, texts, async (...parts) => {
      for (const token of [parts.join('.'), parts.join('')])
        expect(token === good || (await reasonOf(token)) !== 'none').toBe(true)
    }),
    { numRuns: 300 },
  )
})

test('no header and no claims cause another error than a refusal, and only the claims of an access token are accepted', async () => {
  const names = constantFrom(
    'alg',
    'typ',
    'kid',
    'crit',
    'b64',
    'iss',
    'aud',
    'exp',
    'nbf',
    'sub',
    'z_t',
    'z_asid',
  )
  await assert(
    asyncProperty(dictionary(names, jsonValue()), dictionary(names, jsonValue()), async (header, more) => {
      const isChanged = Object.keys(more).some((name) => !['alg', 'typ', 'kid', 'crit', 'b64'].includes(name))
      const reason = await reasonOf(signToken(key, { ...claims, ...more }, header))
      expect(reason === 'none' || reason !== '').toBe(true)
      if (reason === 'none' && isChanged) {
        const accepted = { ...claims, ...more } as Record<string, unknown>
        expect([accepted.iss, accepted.z_t]).toEqual([ISSUER, 'a'])
        expect([accepted.aud].flat()).toSatisfy((all) =>
          [all].flat().some((one) => one === 'native' || one === 'openziti'),
        )
      }
    }),
    { numRuns: 300 },
  )
})

test('no changed character is accepted', async () => {
  const changed = integer({ min: 0, max: good.length - 1 })
  await assert(
    asyncProperty(changed, constantFrom(...'AZaz09-_.=+/ '), async (at, by) => {
      const token = good.slice(0, at) + by + good.slice(at + 1)
      if (token === good || isSameBytes(token)) return
      expect(await reasonOf(token)).not.toBe('none')
    }),
    { numRuns: 300 },
  )
})

/** The last character of a part has bits that mean nothing. */
const isSameBytes = (token: string): boolean =>
  token.split('.').length === 3 &&
  token
    .split('.')
    .every((part, i) =>
      Buffer.from(part, 'base64url').equals(Buffer.from(good.split('.')[i] ?? '', 'base64url')),
    )

import { sign } from 'node:crypto'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { fakePki, newKey, type TestKey, TOKEN_MS, testTokens } from '../../test/session-tokens.js'
import { openClientToken } from './client-tokens.js'
import { sessionKeyIn } from './session-tokens.js'

const start = Date.parse('2026-01-01T00:00:00.400Z')
const session = {
  ...{ id: 'cs1', token: 'uuid', apiSessionId: 'as1', identityId: 'alice', serviceId: 'wiki' },
  type: 'Bind' as const,
}

let now = start
let pki: ReturnType<typeof fakePki>
let started: Awaited<ReturnType<typeof testTokens>>
beforeEach(async () => {
  now = start
  pki = fakePki()
  started = await testTokens({ pki, now: () => now })
})
afterEach(() => started[Symbol.asyncDispose]())

const partsOf = (token: string | undefined) =>
  (token ?? '')
    .split('.')
    .slice(0, 2)
    .map((part) => JSON.parse(Buffer.from(part, 'base64url').toString()))
const signed = async () => (await started.tokens.sign(session)) ?? ''

/** As anybody with this key could sign. */
function forged(key: TestKey, claims: object, header: object = {}): string {
  const input = [{ alg: 'ES256', typ: 'JWT', kid: key.id, ...header }, claims]
    .map((part) => Buffer.from(JSON.stringify(part)).toString('base64url'))
    .join('.')
  const signature = sign('sha256', Buffer.from(input), { key: key.privateKey, dsaEncoding: 'ieee-p1363' })
  return `${input}.${signature.toString('base64url')}`
}
const reload = () => started.keys.reload({})

test('a token has the claims that routers and SDKs read, and says what it was signed for', async () => {
  const token = await signed()
  const iat = Math.floor(start / 1000)
  expect(partsOf(token)).toEqual([
    { alg: 'ES256', typ: 'JWT', kid: pki.state.signing.id },
    {
      iss: 'https://api.example:1280',
      sub: 'wiki',
      aud: ['openziti'],
      iat,
      exp: iat + TOKEN_MS / 1000,
      jti: 'cs1',
      z_asid: 'as1',
      z_iid: 'alice',
      z_t: 's',
      z_st: 'Bind',
      z_leg: true,
    },
  ])
  const { token: _, ...facts } = session
  expect(await started.tokens.verify(token)).toMatchObject(facts)
})

test('a session is signed once until half of the life of its token is over', async () => {
  const first = await signed()
  expect(await signed()).toBe(first)
  now = start + TOKEN_MS / 2 - 1000
  expect(await signed()).toBe(first)
  expect(started.tokens.isFresh(await verified(first))).toBe(true)
  now = start + TOKEN_MS / 2
  expect(started.tokens.isFresh(await verified(first))).toBe(false)
  const second = await signed()
  expect(second).not.toBe(first)
  expect(started.tokens.isFresh(await verified(second))).toBe(true)
  now = start + TOKEN_MS
  expect(await started.tokens.verify(first)).toBeUndefined()
  expect(await started.tokens.verify(second)).toBeDefined()
})

async function verified(token: string) {
  const content = await started.tokens.verify(token)
  if (!content) throw new Error('not verified')
  return content
}

test('after a change of the key sessions are signed with the new one, and tokens of the former stay valid', async () => {
  const first = await signed()
  pki.state.signing = newKey()
  pki.state.published.push(pki.state.signing)
  await reload()
  const second = await signed()
  expect(partsOf(second)[0].kid).toBe(pki.state.signing.id)
  for (const token of [first, second]) expect(await started.tokens.verify(token)).toBeDefined()
})

test('tokens of a key that is removed are refused, also if they were verified before', async () => {
  const token = await signed()
  expect(await started.tokens.verify(token)).toBeDefined()
  pki.state.signing = newKey()
  pki.state.published = [pki.state.signing]
  await reload()
  expect(await started.tokens.verify(token)).toBeUndefined()
})

test('while pki does not answer, the last key signs and verifies', async () => {
  const token = await signed()
  expect(await started.tokens.verify(token)).toBeDefined()
  pki.state.isAway = true
  await reload()
  expect(await started.tokens.sign({ ...session, id: 'cs2' })).toBeTypeOf('string')
  expect(await started.tokens.verify(token)).toBeDefined()
})

describe('forged and foreign tokens are refused:', () => {
  const claims = async () => partsOf(await signed())[1]
  test.each<[string, (own: TestKey, content: object) => string]>([
    ['another key under the name of ours', ({ id }, content) => forged(newKey(id), content)],
    ['an unknown key', (_, content) => forged(newKey(), content)],
    ['a key of access tokens', (_, content) => forged(pki.state.others[0] ?? newKey(), content)],
    ['an access token', (own, content) => forged(own, { ...content, z_t: 'a' })],
    ['an unknown type', (own, content) => forged(own, { ...content, z_st: 'Both' })],
    ['no time of its end', (own, content) => forged(own, { ...content, exp: undefined })],
    ['no session', (own, content) => forged(own, { ...content, jti: undefined })],
    ['another algorithm', (own, content) => forged(own, content, { alg: 'RS256' })],
    ['none', (own, content) => forged(own, content, { alg: 'none' })],
    [
      'a key in the header',
      (own, content) => forged(own, content, { jwk: own.publicKey.export({ format: 'jwk' }) }),
    ],
    [
      'other claims',
      (own, content) =>
        forged(own, content).replace(/\.[\w-]+\./, `.${Buffer.from('{}').toString('base64url')}.`),
    ],
    ['no signature', (own, content) => `${forged(own, content).replace(/[\w-]+$/, '')}AA`],
    ['cut', (own, content) => forged(own, content).slice(0, -9)],
    ['no token', () => 'ey'],
  ])('%s', async (_what, forge) => {
    expect(await started.tokens.verify(forge(pki.state.signing, await claims()))).toBeUndefined()
  })
})

test('a signature is verified once, and paid for before', async () => {
  const token = await signed()
  const spent: number[] = []
  for (let i = 0; i < 3; i++) await started.tokens.verify(token, (units) => spent.push(units))
  expect(spent).toEqual([150])
  await started.tokens.verify(`${token.slice(0, -4)}AAAA`, (units) => spent.push(units))
  expect(spent).toEqual([150, 150])
  await started.tokens.verify('eyJ.unknown.key', (units) => spent.push(units))
  expect(spent).toHaveLength(2)
})

test('a router names a session by its id, its stored token or a signed one', async () => {
  expect(sessionKeyIn(await signed())).toBe('cs1')
  for (const other of ['cs1', 'uuid', 'eyJ', 'eyJ.e30.e30', '']) expect(sessionKeyIn(other)).toBe(other)
})

describe('a client gets', () => {
  const [old, current] = [
    {
      hasDataModel: false,
      verifiesTokens: false,
      needsSignedSessions: false,
      isGrouped: false,
      comparesModel: false,
    },
    {
      hasDataModel: true,
      verifiesTokens: true,
      needsSignedSessions: true,
      isGrouped: true,
      comparesModel: true,
    },
  ]
  const tokenAt = (...routers: readonly (typeof old | undefined)[]) =>
    openClientToken(started.tokens, { lastFeaturesOf: () => routers })(session, [])

  test.each([
    ['the stored token, where all routers are old', [old, old], false],
    ['a signed token, where one of them needs it', [old, current], true],
    ['a signed token, where one has not been seen', [old, undefined], true],
    ['the stored token, where there is no router', [], false],
  ] as const)('%s', async (_what, routers, isSigned) => {
    expect((await tokenAt(...routers)).startsWith('ey')).toBe(isSigned)
  })

  test('no token that routers would refuse, before pki has a key', async () => {
    await started[Symbol.asyncDispose]()
    pki.state.isAway = true
    started = await testTokens({ pki })
    await expect(tokenAt(current)).rejects.toMatchObject({ code: 'UNAVAILABLE' })
    expect(await tokenAt(undefined)).toBe('uuid') // pki may be of the release before
    pki.state.isAway = false
    expect(await tokenAt(current)).toMatch(/^ey/)
  })
})

import { randomUUID } from 'node:crypto'
import { newTokenKey, signToken } from '@overlay/process/tokens/testing'
import sql from 'sql-template-tag'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Replica, system, type TestIdentity, testIdentity } from './identity.js'
import {
  type Answer,
  claimsOf,
  client,
  exchanged,
  logIn,
  person,
  refreshed,
  tokenRequest,
  typeOf,
  works,
} from './oidc.js'

let identity: TestIdentity
let one: Replica
let two: Replica
beforeAll(async () => {
  identity = await testIdentity()
  one = await identity.replica()
  two = await identity.replica()
})
afterAll(() => identity[Symbol.asyncDispose]())

const invalidGrant = { error: 'invalid_grant' }
const invalidRequest = { error: 'invalid_request' }
const written = { position: { number: expect.any(Number) } }
const sessionOf = ({ access_token }: Answer) => claimsOf(access_token).z_asid

async function entered(name: string, members: object = {}) {
  const id = await person(one, name)
  return { id, answer: await logIn(one, name, members) }
}

test('a refresh replaces the refresh token and keeps the API session', async () => {
  const { answer } = await entered('refreshing')
  const next = await refreshed(two, answer.refresh_token)
  expect(next).toMatchObject({ token_type: 'Bearer' })
  expect(Object.keys(next)).not.toContain('state')
  expect(sessionOf(next)).toBe(sessionOf(answer))
  expect(claimsOf(next.access_token).amr).toEqual(['password'])
  expect(claimsOf(next.id_token)).toMatchObject({ name: 'refreshing', nonce: 'a nonce', azp: 'native' })
  expect(await refreshed(one, answer.refresh_token)).toEqual(invalidGrant)
  expect(await exchanged(one, answer.refresh_token)).toEqual(invalidGrant)
  expect(await refreshed(one, next.refresh_token)).toMatchObject({ token_type: 'Bearer' })
})

test('of parallel refreshes with one token one succeeds, and its tokens work', async () => {
  const { answer } = await entered('hasty')
  const answers = await Promise.all([one, two, one, two].map((r) => refreshed(r, answer.refresh_token)))
  const [won, ...others] = answers.filter(({ error }) => error === undefined)
  expect(others).toEqual([])
  expect(won && (await works(two, won.access_token))).toBe(true)
})

test('reuse of a refresh token that was replaced a while ago ends the API session', async () => {
  const { answer } = await entered('robbed')
  const next = await refreshed(one, answer.refresh_token)
  await one.db.query(sql`
    update refresh_token set consumed_at = now() - interval '61 seconds'
     where id = ${String(claimsOf(answer.refresh_token).jti)}`)
  expect(await refreshed(two, answer.refresh_token)).toEqual(invalidGrant)
  expect(await works(one, next.access_token)).toBe(false)
  expect(await refreshed(one, next.refresh_token)).toEqual(invalidGrant)
})

test('an exchange does not consume the refresh token, and repeats what the login has proven', async () => {
  const { id, answer } = await entered('renewing')
  const renewed = await exchanged(two, answer.refresh_token)
  expect(renewed).toMatchObject({ token_type: 'Bearer', issued_token_type: typeOf('refresh_token') })
  const named = await exchanged(one, answer.refresh_token, 'id_token')
  expect(named).toMatchObject({ token_type: 'N_A', issued_token_type: typeOf('id_token') })
  expect(Object.keys(named)).not.toContain('expires_in')
  expect(claimsOf(named.access_token)).toMatchObject({
    sub: id,
    name: 'renewing',
    nonce: 'a nonce',
    amr: ['password'],
  })
  const scopes = ['openid', 'offline_access']
  for (const token of [renewed.access_token, renewed.refresh_token])
    expect(claimsOf(token)).toMatchObject({ sub: id, scopes, amr: ['password'] })
  for (const token of [answer.refresh_token, renewed.refresh_token])
    expect(await refreshed(one, token)).toMatchObject({ token_type: 'Bearer' })
})

test('an access token buys nothing', async () => {
  const from = { subjectTokenType: typeOf('access_token') }
  for (const [name, members] of [
    ['offline', {}],
    ['online', { scopes: ['openid'] }],
  ] as const) {
    const { answer } = await entered(name, members)
    for (const type of ['refresh_token', 'access_token', 'id_token']) {
      expect(await exchanged(one, answer.access_token, type, from)).toEqual(invalidRequest)
      expect(await exchanged(one, answer.access_token, type)).toEqual(invalidGrant)
    }
    expect(await works(one, answer.access_token)).toBe(true)
  }
})

test('scopes of later tokens are among those that were granted', async () => {
  const { answer } = await entered('narrowing')
  const narrow = await refreshed(one, answer.refresh_token, { scopes: ['openid'] })
  expect(claimsOf(narrow.access_token).scopes).toEqual(['openid'])
  const more = { scopes: ['openid', 'profile'] }
  expect(await refreshed(one, narrow.refresh_token, more)).toEqual({ error: 'invalid_scope' })
  expect(await exchanged(one, narrow.refresh_token, 'access_token', more)).toEqual({ error: 'invalid_scope' })
  const whole = await refreshed(one, narrow.refresh_token)
  expect(claimsOf(whole.access_token).scopes).toEqual(['openid', 'offline_access'])
})

test('tokens of another client, kind or issuer are refused', async () => {
  const { answer } = await entered('mixing')
  const foreign = { clientId: 'openziti' }
  expect(await refreshed(one, answer.refresh_token, foreign)).toEqual(invalidGrant)
  expect(await exchanged(one, answer.refresh_token, 'refresh_token', foreign)).toEqual(invalidGrant)
  for (const token of [answer.access_token, answer.id_token, 'nothing', 'a.b.c', '..', 'e30.e30.'])
    expect(await refreshed(one, token)).toEqual(invalidGrant)
  for (const token of [answer.access_token, answer.id_token, 'nothing'])
    expect(await exchanged(one, token)).toEqual(invalidGrant)
  expect(await refreshed(one, '')).toEqual(invalidRequest)
  expect(await exchanged(one, '')).toEqual(invalidRequest)
  expect(await exchanged(one, answer.refresh_token, 'magic')).toEqual(invalidRequest)
  const asId = { subjectTokenType: typeOf('id_token') }
  expect(await exchanged(one, answer.id_token, 'refresh_token', asId)).toEqual(invalidRequest)
  expect(await refreshed(one, answer.refresh_token)).toMatchObject({ token_type: 'Bearer' })
})

test('forged tokens are refused, and look at no key that they bring', async () => {
  const { answer } = await entered('forged')
  const { key } = identity.world.tokenSigner
  const claims = claimsOf(answer.refresh_token)
  const other = newTokenKey(randomUUID())
  const [header = '', payload = '', signature = ''] = answer.refresh_token.split('.')
  const encoded = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')
  const forged = [
    signToken({ ...other, id: key.id }, claims),
    signToken(other, claims),
    signToken(key, claims, { kid: undefined }),
    signToken(key, claims, { crit: ['exp'], exp: 1 }),
    signToken(key, claims, { jku: 'https://localhost/keys' }),
    signToken(key, claims, { alg: 'RS384' }),
    signToken(key, { ...claims, iss: 'https://elsewhere/oidc' }),
    signToken(key, { ...claims, exp: Math.floor(Date.now() / 1000) - 1 }),
    signToken(key, { ...claims, jti: randomUUID() }),
    signToken(key, { ...claims, jti: "'; drop" }),
    signToken(key, { ...claims, z_t: 's' }),
    signToken(key, { ...claims, aud: [] }),
    signToken(key, { ...claims, sub: 7 }),
    `${encoded({ alg: 'none', kid: key.id })}.${payload}.`,
    `${encoded({ alg: 'HS256', kid: key.id })}.${payload}.${signature}`,
    `${header}.${encoded({ ...claims, sub: 'somebody' })}.${signature}`,
    `${header}.${payload}.${signature}x`,
    answer.refresh_token + 'x'.repeat(70_000),
  ]
  for (const token of forged) expect(await refreshed(one, token), token.slice(0, 80)).toEqual(invalidGrant)
  expect(await refreshed(one, answer.refresh_token)).toMatchObject({ token_type: 'Bearer' })
})

test('no text at the token endpoint is a server error', async () => {
  const { answer } = await entered('fuzzed')
  const token = answer.refresh_token
  for (let i = 0; i < 300; i++) {
    const at = Math.floor(Math.random() * token.length)
    const byte = String.fromCharCode(Math.floor(Math.random() * 256))
    const mutant = i % 3 === 0 ? token.slice(0, at) : token.slice(0, at) + byte + token.slice(at + 1)
    if (mutant === token || mutant.replace(/=+$/, '') === token || mutant === '') continue
    // so many bad tokens would pause their source
    if (i % 100 === 0) await one.db.query(sql`delete from guess where kind = 'token'`)
    const { error } = await (i % 2 === 0 ? refreshed(one, mutant) : exchanged(one, mutant))
    // the last character of a signature has unused bits
    if (at < token.length - 1 || mutant.length < token.length) expect(error, mutant).toBe('invalid_grant')
  }
})

test.each([
  ['disabled', (id: string) => one.identity.disableIdentity({ id, durationMinutes: 0 }, system())],
  ['deleted', (id: string) => one.entities.delete({ kind: 'identities', id }, system())],
])('tokens of an identity that is %s buy nothing', async (what, act) => {
  const { id, answer } = await entered(`later ${what}`)
  await act(id)
  expect(await works(two, answer.access_token)).toBe(false)
  expect(await refreshed(one, answer.refresh_token)).toEqual(invalidGrant)
  expect(await exchanged(one, answer.refresh_token)).toEqual(invalidGrant)
})

test.each(['access_token', 'refresh_token'] as const)(
  'revoking the %s ends the API session, once',
  async (kind) => {
    const { answer } = await entered(`revoking ${kind}`)
    const revoke = (clientId: string, token: string) => two.oidc.revokeToken({ clientId, token }, client)
    for (const [clientId, token] of [
      ['openziti', answer[kind]],
      ['native', 'nothing'],
      ['native', answer.id_token],
    ] as const)
      expect(await revoke(clientId, token)).toEqual({})
    expect(await works(one, answer.access_token)).toBe(true)
    expect(await revoke('native', answer[kind])).toMatchObject(written)
    expect(await revoke('native', answer[kind])).toEqual({})
    expect(await works(one, answer.access_token)).toBe(false)
    expect(await refreshed(one, answer.refresh_token)).toEqual(invalidGrant)
    expect(await exchanged(one, answer.refresh_token)).toEqual(invalidGrant)
  },
)

test('a logout ends the API session of the id token, also of one that has expired, and may be repeated', async () => {
  const { answer } = await entered('leaving')
  const other = await logIn(one, 'leaving', { nonce: 'another' })
  const { key } = identity.world.tokenSigner
  const expired = signToken(key, { ...claimsOf(answer.id_token), exp: 1 })
  const leave = (idTokenHint: string, clientId = '') => two.oidc.endSession({ idTokenHint, clientId }, client)
  for (const hint of ['nothing', '', answer.access_token, answer.refresh_token])
    expect(await leave(hint)).toMatchObject({ error: invalidRequest })
  expect(await leave(answer.id_token, 'openziti')).toMatchObject({ error: invalidRequest })
  expect(await works(one, answer.access_token)).toBe(true)
  const left = { clientId: 'native', error: undefined }
  expect(await leave(expired, 'native')).toMatchObject({ ...left, ...written })
  expect(await leave(answer.id_token, 'native')).toEqual(left)
  expect(await works(one, answer.access_token)).toBe(false)
  expect(await works(one, other.access_token)).toBe(true)
})

test('an API session lasts as long as its newest token', async () => {
  const endOf = async (answer: Answer) => {
    const { rows } = await one.db.query<{ seconds: number }>(
      sql`select extract(epoch from expires_at)::float8 as seconds from api_session where id = ${String(sessionOf(answer))}`,
    )
    return rows[0]?.seconds
  }
  const { answer } = await entered('lasting', { scopes: ['openid'] })
  expect(await endOf(answer)).toBe(claimsOf(answer.access_token).exp)
  const offline = await entered('lasting longer')
  expect(await endOf(offline.answer)).toBe(claimsOf(offline.answer.refresh_token).exp)
})

test('a source of many bad grants is told to wait, while good ones pass', async () => {
  const { answer } = await entered('beside a flood')
  const context = { ...client, sourceAddress: '10.9.8.7' }
  const grant = (refreshToken: string) =>
    one.oidc.getTokens(
      tokenRequest({ grantType: 'refresh_token', clientId: 'native', refreshToken }),
      context,
    )
  expect(await grant('nothing')).toMatchObject({ error: invalidGrant })
  await one.db.query(sql`
    update guess set settled_at = now() + interval '300 seconds' where kind = 'token' and source = '10.9.8.7'`)
  await expect(grant('nothing')).rejects.toMatchObject({
    code: 'SERVER_TOO_MANY_REQUESTS',
    retryAfterSeconds: expect.any(Number),
  })
  expect(await grant(answer.refresh_token)).toMatchObject({ error: undefined })
})

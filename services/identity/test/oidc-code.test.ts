import { createHash } from 'node:crypto'
import sql from 'sql-template-tag'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { removeOldRefreshTokens } from '../src/store/oidc-grants.js'
import { removeOldLogins } from '../src/store/oidc-logins.js'
import { bytes, parsed, type Replica, system, type TestIdentity, testIdentity } from './identity.js'
import {
  claimsOf,
  client,
  code,
  codeRequest,
  from,
  logIn,
  person,
  policy,
  present,
  refreshed,
  start,
  tokenRequest,
  tokens,
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

const refused = { code: 'INVALID_AUTH' }
const invalidGrant = { error: 'invalid_grant' }
const halfHash = (text: string) =>
  createHash('sha256').update(text).digest().subarray(0, 16).toString('base64url')

test('a login by password yields tokens of an API session, with replicas in turn', async () => {
  const id = await person(one, 'walking', { externalId: 'outside' })
  const flow = await start(one)
  const ref = { id: flow.id, browser: '' }
  expect(await two.oidc.getLogin(ref, client)).toMatchObject({ isIdentified: false, isComplete: false })
  expect(await two.oidc.finishLogin(ref, client)).toMatchObject({ code: '', login: { isComplete: false } })
  expect(await two.oidc.getLogin(ref, client)).toMatchObject({ isIdentified: false })
  const state = await present(one, flow, { username: 'walking' })
  expect(state).toMatchObject({ id: flow.id, isIdentified: true, isComplete: true, needsCode: false })
  const { code, login } = await two.oidc.finishLogin(ref, client)
  expect(login).toMatchObject({ clientId: 'native', state: 'a state' })
  const answer = await tokens(one, codeRequest(flow, code))
  expect(answer).toMatchObject({ token_type: 'Bearer', state: 'a state' })

  const access = claimsOf(answer.access_token)
  const shared = {
    iss: 'https://localhost:1280/oidc',
    sub: id,
    aud: ['native'],
    amr: ['password'],
    client_id: 'native',
    auth_time: expect.any(Number),
  }
  const bearer = {
    ...shared,
    scopes: ['openid', 'offline_access'],
    z_aid: 'native',
    z_asid: expect.stringMatching(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/),
    z_cfs: null,
    z_ra: '192.0.2.1:50000',
    z_ice: false,
    z_eid: 'outside',
  }
  expect(access).toMatchObject({ ...bearer, z_t: 'a' })
  expect(Number(access.exp) - Number(access.iat)).toBe(1800)
  expect(claimsOf(answer.refresh_token)).toMatchObject({ ...bearer, z_t: 'r', z_asid: access.z_asid })
  expect(claimsOf(answer.id_token)).toMatchObject({
    ...shared,
    azp: 'native',
    name: 'walking',
    nonce: 'a nonce',
    z_ia: false,
    at_hash: halfHash(answer.access_token),
    c_hash: halfHash(code),
  })
  expect(Object.keys(claimsOf(answer.id_token))).not.toContain('z_asid')
  expect(Object.keys(access)).not.toContain('z_ia')
  expect(Object.keys(access)).not.toContain('z_ct')
  expect(await works(two, answer.access_token)).toBe(true)
})

test('a code is redeemed once, also by parallel requests', async () => {
  await person(one, 'parallel')
  const { request } = await code(one, 'parallel')
  const answers = await Promise.all([one, two, one, two].map((replica) => tokens(replica, request)))
  expect(answers.filter(({ error }) => error === undefined)).toHaveLength(1)
  expect(answers.filter(({ error }) => error === 'invalid_grant')).toHaveLength(3)
})

test('a code that is presented again ends the API session that it has opened', async () => {
  await person(one, 'replayed')
  const { request } = await code(one, 'replayed')
  const answer = await tokens(one, request)
  for (const other of [
    { codeVerifier: 'x'.repeat(48) },
    { codeVerifier: 'short' },
    { clientId: 'openziti' },
    { code: 'nothing' },
  ])
    expect(await tokens(two, { ...request, ...other })).toEqual(invalidGrant)
  expect(await works(two, answer.access_token)).toBe(true)
  const again = await two.oidc.getTokens(tokenRequest(request), client)
  expect(again).toMatchObject({ error: invalidGrant, position: { number: expect.any(Number) } })
  expect(await works(one, answer.access_token)).toBe(false)
  expect(await refreshed(one, answer.refresh_token)).toEqual(invalidGrant)
  expect(await tokens(two, request)).toEqual(invalidGrant)
})

test('a request that does not match leaves the code', async () => {
  await person(one, 'clumsy')
  const { request } = await code(one, 'clumsy')
  for (const wrong of [
    { codeVerifier: 'x'.repeat(48) },
    { codeVerifier: 'short' },
    { clientId: 'openziti' },
    { redirectUri: 'http://127.0.0.1:9/auth/callback' },
    { redirectUri: '' },
    { code: 'nothing' },
  ])
    expect(await tokens(two, { ...request, ...wrong })).toEqual(invalidGrant)
  for (const missing of [{ codeVerifier: '' }, { code: '' }, { grantType: '' }])
    expect(await tokens(two, { ...request, ...missing })).toEqual({ error: 'invalid_request' })
  expect(await tokens(two, { ...request, grantType: 'magic' })).toEqual({ error: 'unsupported_grant_type' })
  expect(await tokens(one, request)).toMatchObject({ token_type: 'Bearer' })
  expect(await tokens(one, request)).toEqual(invalidGrant)
})

test('a code survives a failure of pki', async () => {
  await person(one, 'unlucky')
  const { request } = await code(one, 'unlucky')
  const { before } = identity.world.tokenSigner
  identity.world.tokenSigner.before = async () => {
    throw new Error('pki is away')
  }
  await expect(tokens(one, request)).rejects.toThrow()
  identity.world.tokenSigner.before = before
  expect(await tokens(one, request)).toMatchObject({ token_type: 'Bearer' })
})

test('refused credentials leave the login, and an unknown login is refused like them', async () => {
  await person(one, 'trying')
  const flow = await start(one)
  await expect(present(one, flow, { username: 'trying', password: 'wrong-one' })).rejects.toMatchObject(
    refused,
  )
  await expect(present(one, flow, { username: 'nobody' })).rejects.toMatchObject(refused)
  for (const id of ['00000000-0000-4000-8000-000000000000', 'nothing', ''])
    await expect(present(one, { id }, { username: 'trying' })).rejects.toMatchObject(refused)
  expect(await present(two, flow, { username: 'trying' })).toMatchObject({ isComplete: true })
})

test('a login is finished once', async () => {
  await person(one, 'finishing')
  const flow = await start(one)
  await present(one, flow, { username: 'finishing' })
  const ref = { id: flow.id, browser: '' }
  const outcomes = await Promise.allSettled([one, two, one, two].map((r) => r.oidc.finishLogin(ref, client)))
  expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
  await expect(one.oidc.getLogin(ref, client)).rejects.toMatchObject({ code: 'NOT_FOUND' })
  await expect(present(one, flow, { username: 'finishing' })).rejects.toMatchObject(refused)
})

test('after the first factor a login exists for its browser only, wherever that is', async () => {
  await person(one, 'lured')
  const flow = await start(one)
  await present(one, flow, { username: 'lured' }, { browser: 'a cookie' })
  const others = [
    { id: flow.id, browser: '' },
    { id: flow.id, browser: 'another' },
  ]
  for (const ref of others) {
    await expect(one.oidc.finishLogin(ref, client)).rejects.toMatchObject({ code: 'NOT_FOUND' })
    await expect(one.oidc.getLogin(ref, client)).rejects.toMatchObject({ code: 'NOT_FOUND' })
    const code = { ...ref, code: '000000' }
    await expect(one.oidc.presentCode(code, client)).rejects.toMatchObject({ code: 'MFA_INVALID_TOKEN' })
    await expect(present(one, flow, { username: 'lured' }, ref)).rejects.toMatchObject(refused)
  }
  const mine = { id: flow.id, browser: 'a cookie' }
  const { code } = await two.oidc.finishLogin(mine, from('203.0.113.9'))
  expect(code).not.toBe('')
})

test.each([
  ['disabled', (id: string) => one.identity.disableIdentity({ id, durationMinutes: 0 }, system())],
  ['deleted', (id: string) => one.entities.delete({ kind: 'identities', id }, system())],
])('the code of an identity that is %s meanwhile is refused', async (what, act) => {
  const id = await person(one, `soon ${what}`)
  const { request } = await code(one, `soon ${what}`)
  await act(id)
  expect(await tokens(one, request)).toEqual(invalidGrant)
})

test('a code is refused when the password has been replaced, or the auth policy demands more', async () => {
  const id = await person(one, 'changing')
  const changed = await code(one, 'changing')
  const ref = { kind: 'identities', id }
  const shown = parsed<{ authenticators: { updb: { id: string } } }>(
    (await one.entities.get({ ref, perspective: undefined }, system())).json,
  )
  await one.entities.update(
    {
      ref: { kind: 'authenticators', id: shown.authenticators.updb.id },
      json: bytes({ password: 'right-two' }),
      mask: ['password'],
    },
    system(),
  )
  expect(await tokens(one, changed.request)).toEqual(invalidGrant)

  await person(one, 'demanded')
  const stricter = await policy(one, 'stricter', { requireTotp: true })
  const { request } = await code(one, 'demanded')
  await one.db.query(sql`update identity set auth_policy_id = ${stricter} where name = 'demanded'`)
  expect(await tokens(one, request)).toEqual(invalidGrant)
})

test('scopes decide which tokens there are', async () => {
  await person(one, 'scoped')
  const online = await logIn(one, 'scoped', { scopes: ['openid'] })
  expect(Object.keys(online)).not.toContain('refresh_token')
  const offline = await logIn(one, 'scoped', { scopes: ['offline_access'] })
  expect(Object.keys(offline)).not.toContain('id_token')
})

test('what the client reports of itself is stored on the identity and in the tokens', async () => {
  const id = await person(one, 'reporting')
  const flow = await start(one)
  const info = { envInfo: bytes({ os: 'plan9' }), sdkInfo: bytes({ appId: 'an app' }) }
  await present(one, flow, { username: 'reporting', ...info })
  const { code } = await one.oidc.finishLogin({ id: flow.id, browser: '' }, client)
  const answer = await tokens(one, codeRequest(flow, code))
  const reported = { z_env: { os: 'plan9' }, z_sdk: { appId: 'an app' } }
  expect(claimsOf(answer.access_token)).toMatchObject(reported)
  expect(claimsOf(answer.refresh_token)).toMatchObject(reported)
  const ref = { kind: 'identities', id }
  expect(parsed((await two.entities.get({ ref, perspective: undefined }, system())).json)).toMatchObject({
    envInfo: { os: 'plan9' },
    sdkInfo: { appId: 'an app' },
  })
})

test('logins of one network beyond the limit end the oldest of them', async () => {
  const source = from('198.51.100.7')
  const first = await start(one, {}, source)
  await one.db.query(sql`
    insert into oidc_login (id, source, client_id, redirect_uri, scopes, state, nonce, code_challenge,
                                   config_types, expires_at)
           select gen_random_uuid(), source, client_id, redirect_uri, scopes, state, nonce, code_challenge,
                  config_types, expires_at
             from oidc_login, generate_series(1, 999) where id = ${first.id}`)
  const other = await start(one)
  await start(one, {}, source)
  const { rows } = await one.db.query<{ logins: string }>(
    sql`select count(*) as logins from oidc_login where source = '198.51.100.7'`,
  )
  expect(Number(rows[0]?.logins)).toBe(1000)
  expect(await one.oidc.getLogin({ id: other.id, browser: '' }, client)).toMatchObject({ id: other.id })
})

test('logins and refresh tokens that have expired are removed, others stay', async () => {
  await person(one, 'expiring')
  const { refresh_token } = await logIn(one, 'expiring')
  const jti = String(claimsOf(refresh_token).jti)
  const [old, recent] = [await start(one), await start(one)]
  const ids = async () => {
    const logins = await one.db.query<{ id: string }>(sql`select id from oidc_login`)
    const refreshes = await one.db.query<{ id: string }>(sql`select id from refresh_token`)
    return [...logins.rows, ...refreshes.rows].map(({ id }) => id)
  }
  await one.db.query(sql`update oidc_login set expires_at = now() where id = ${old.id}`)
  await removeOldLogins(one.db)
  await removeOldRefreshTokens(one.db)
  expect(await ids()).toEqual(expect.arrayContaining([recent.id, jti]))
  expect(await ids()).not.toContain(old.id)
  await one.db.query(sql`update refresh_token set expires_at = now() where id = ${jti}`)
  await removeOldRefreshTokens(one.db)
  expect(await ids()).not.toContain(jti)
})

test('beyond the limit of all networks, those with many logins lose the oldest of them', async () => {
  const lonely = await start(one, {}, from('198.51.100.8'))
  await one.db.query(sql`
    insert into oidc_login (id, source, client_id, redirect_uri, scopes, state, nonce, code_challenge,
                            config_types, expires_at)
    select gen_random_uuid(), 'flood ' || n % 60, client_id, redirect_uri, scopes, state, nonce, code_challenge,
           config_types, expires_at
      from oidc_login, generate_series(1, 50000) as n where id = ${lonely.id}`)
  await removeOldLogins(one.db)
  const { rows } = await one.db.query<{ logins: number }>(sql`select count(*)::int as logins from oidc_login`)
  expect(rows[0]?.logins).toBeLessThanOrEqual(50_000)
  expect(await one.oidc.getLogin({ id: lonely.id, browser: '' }, client)).toMatchObject({ id: lonely.id })
  await one.db.query(sql`delete from oidc_login where source like 'flood %'`)
})

import sql from 'sql-template-tag'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { codeAt } from '../src/domain/second-factor.js'
import { removeSecondFactor } from '../src/store/second-factors.js'
import {
  as,
  lockWaits,
  login,
  parsed,
  type Replica,
  system,
  type TestIdentity,
  testIdentity,
} from './identity.js'
import {
  claimsOf,
  client,
  codeRequest,
  type Flow,
  logIn,
  person,
  policy,
  present,
  refreshed,
  start,
  tokens,
} from './oidc.js'

let identity: TestIdentity
let one: Replica
let two: Replica
let totpPolicy: string
beforeAll(async () => {
  identity = await testIdentity()
  one = await identity.replica()
  two = await identity.replica()
  totpPolicy = await policy(one, 'with codes', { requireTotp: true })
})
afterAll(() => identity[Symbol.asyncDispose]())

const invalid = { code: 'MFA_INVALID_TOKEN' }
const notFound = { code: 'NOT_FOUND' }
const step = (): number => Math.floor(Date.now() / 30_000)
const secretIn = (provisioningUrl: string): string =>
  new URL(provisioningUrl).searchParams.get('secret') ?? ''
const refOf = ({ id }: Flow) => ({ id, browser: '' })
const enter = (flow: Flow, code: string, replica = one) =>
  replica.oidc.presentCode({ ...refOf(flow), code }, client)

async function finish(flow: Flow, browser = '') {
  const { code } = await two.oidc.finishLogin({ id: flow.id, browser }, client)
  return tokens(one, codeRequest(flow, code))
}

/** An identity with a verified second factor, whose code of the step before has been used. */
async function protectedPerson(name: string, members: object = {}) {
  const id = await person(one, name, members)
  const context = as({ identityId: id })
  await one.identity.startMfa({}, context)
  const { provisioningUrl, recoveryCodes } = await one.identity.getMfa({}, context)
  const secret = secretIn(provisioningUrl)
  await one.identity.verifyMfa({ code: codeAt(secret, step() - 1) }, context)
  return { id, secret, recoveryCodes }
}

async function begun(name: string): Promise<Flow> {
  const flow = await start(one)
  await present(one, flow, { username: name })
  return flow
}

test('a verified second factor is asked for, with replicas in turn, and the tokens name it', async () => {
  const { id, secret } = await protectedPerson('careful')
  const flow = await start(one)
  const state = await present(two, flow, { username: 'careful' })
  expect(state).toMatchObject({
    isIdentified: true,
    isComplete: false,
    needsCode: true,
    needsEnrollment: false,
    needsToken: false,
  })
  expect(parsed(state.authQueries)).toMatchObject([{ typeId: 'MFA', isTotpEnrolled: true }])
  expect(await one.oidc.finishLogin(refOf(flow), client)).toMatchObject({ code: '' })
  for (const wrong of ['000000', '']) await expect(enter(flow, wrong)).rejects.toMatchObject(invalid)
  expect(await enter(flow, codeAt(secret, step()), two)).toMatchObject({ isComplete: true, needsCode: false })
  const answer = await finish(flow)
  for (const token of [answer.access_token, answer.refresh_token, answer.id_token])
    expect(claimsOf(token).amr).toEqual(['password', 'totp'])
  const claims = { apiSessionId: String(claimsOf(answer.access_token).z_asid), identityId: id }
  const session = await two.identity.getBearerSession(claims, client)
  expect(session).toMatchObject({ isPartial: false })
  expect(parsed(session.json)).toMatchObject({ isMfaRequired: true, isMfaComplete: true, authQueries: [] })
})

test('posture checks learn when the code of a login was accepted', async () => {
  const { recoveryCodes } = await protectedPerson('postured')
  const flow = await begun('postured')
  await enter(flow, recoveryCodes[0] ?? '')
  const before = await one.changeLog.head()
  const { access_token } = await finish(flow)
  const { changes } = await one.changeLog.pull(before)
  const own = changes.filter(
    ({ kind, id }) => kind === 'api-sessions' && id === claimsOf(access_token).z_asid,
  )
  expect(own.map(({ json }) => parsed(json))).toMatchObject([{ mfaPassedAt: expect.any(String) }])
})

test('a code counts once in parallel logins, and a recovery code once', async () => {
  const { secret, recoveryCodes } = await protectedPerson('sharing')
  const flows = await Promise.all([1, 2, 3].map(() => begun('sharing')))
  const code = codeAt(secret, step() + 1)
  const outcomes = await Promise.allSettled(flows.map((flow, i) => enter(flow, code, i === 0 ? one : two)))
  expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
  const [recovery = ''] = recoveryCodes
  expect(await enter(await begun('sharing'), recovery)).toMatchObject({ isComplete: true })
  await expect(enter(await begun('sharing'), recovery)).rejects.toMatchObject(invalid)
})

test('codes before the first factor, for unknown logins and from another browser are refused alike, and do not count', async () => {
  const { secret } = await protectedPerson('early')
  const code = codeAt(secret, step() + 1)
  const flow = await start(one)
  await expect(enter(flow, code)).rejects.toMatchObject(invalid)
  for (const id of ['00000000-0000-4000-8000-000000000000', 'nothing', ''])
    await expect(enter({ ...flow, id }, code)).rejects.toMatchObject(invalid)
  await present(one, flow, { username: 'early' }, { browser: 'a cookie' })
  await expect(enter(flow, code)).rejects.toMatchObject(invalid)
  const mine = { id: flow.id, code, browser: 'a cookie' }
  expect(await one.oidc.presentCode(mine, client)).toMatchObject({ isComplete: true })
})

test('another first factor takes the place of the former one and its codes', async () => {
  const { secret } = await protectedPerson('former')
  const { id } = await protectedPerson('latter')
  const flow = await begun('former')
  await present(one, flow, { username: 'latter' })
  await expect(enter(flow, codeAt(secret, step() + 1))).rejects.toMatchObject(invalid)
  expect(await two.oidc.getLogin(refOf(flow), client)).toMatchObject({ needsCode: true })
  expect(id).not.toBe('')
})

test('when the second factor is removed, an API session waits for another if its policy demands one', async () => {
  for (const [name, members, isPartial] of [
    ['free', {}, false],
    ['bound', { authPolicyId: totpPolicy }, true],
  ] as const) {
    const { id, recoveryCodes } = await protectedPerson(name, members)
    const flow = await begun(name)
    await enter(flow, recoveryCodes[0] ?? '')
    const { access_token, refresh_token } = await finish(flow)
    await one.identity.removeMfaOf({ kind: 'identities', id }, system())
    const claims = { apiSessionId: String(claimsOf(access_token).z_asid), identityId: id }
    expect(await two.identity.getBearerSession(claims, client)).toMatchObject({ isPartial })
    const renewed = await refreshed(two, refresh_token)
    expect(claimsOf(renewed.access_token).amr).toEqual(['password'])
  }
})

test.each(['before its code is issued', 'before its code is redeemed'])(
  'a login forgets a second factor that is removed %s',
  async (when) => {
    const name = `removed ${when}`
    const { id, recoveryCodes } = await protectedPerson(name, { authPolicyId: totpPolicy })
    const flow = await begun(name)
    await enter(flow, recoveryCodes[0] ?? '')
    const remove = () => one.identity.removeMfaOf({ kind: 'identities', id }, system())
    if (when.includes('issued')) await remove()
    const { code } = await two.oidc.finishLogin(refOf(flow), client)
    if (when.includes('redeemed')) await remove()
    expect(await tokens(one, codeRequest(flow, code))).toEqual({ error: expect.any(String) })
  },
)

test('a code that is redeemed while the second factor is removed yields no complete session', async () => {
  const { id, recoveryCodes } = await protectedPerson('racing', { authPolicyId: totpPolicy })
  const flow = await begun('racing')
  await enter(flow, recoveryCodes[0] ?? '')
  const { code } = await two.oidc.finishLogin(refOf(flow), client)
  let redeemed: Promise<unknown> | undefined
  await one.db.transaction(undefined, async (tx) => {
    await removeSecondFactor(tx, id)
    redeemed = tokens(two, codeRequest(flow, code)) // has read the login before, and waits for the identity
    await expect.poll(() => lockWaits(one.db, 'identity')).toBe(1)
  })
  expect(await redeemed).toEqual({ error: 'invalid_grant' })
})

test('a second factor that is not verified is not asked for', async () => {
  const id = await person(one, 'undecided')
  await one.identity.startMfa({}, as({ identityId: id }))
  const flow = await start(one)
  expect(await present(one, flow, { username: 'undecided' })).toMatchObject({
    isComplete: true,
    needsCode: false,
  })
})

test('where the policy demands TOTP, the login enrolls it and asks for a first code', async () => {
  const id = await person(one, 'required', { authPolicyId: totpPolicy })
  const flow = await start(one)
  await expect(one.oidc.enrollSecondFactor(refOf(flow), client)).rejects.toMatchObject(notFound)
  const mine = { id: flow.id, browser: 'a cookie' }
  const state = await present(one, flow, { username: 'required' }, mine)
  expect(state).toMatchObject({ isComplete: false, needsCode: true, needsEnrollment: true })
  expect(parsed(state.authQueries)).toMatchObject([{ typeId: 'MFA', isTotpEnrolled: false }])

  await expect(one.oidc.enrollSecondFactor(refOf(flow), client)).rejects.toMatchObject(notFound)
  const first = await one.oidc.enrollSecondFactor(mine, client)
  const second = await two.oidc.enrollSecondFactor(mine, client)
  expect(second).toMatchObject({
    isVerified: false,
    recoveryCodes: expect.arrayContaining([expect.any(String)]),
  })
  expect(secretIn(second.provisioningUrl)).not.toBe(secretIn(first.provisioningUrl))

  const verify = (code: string) => two.oidc.verifySecondFactor({ ...mine, code }, client)
  const code = codeAt(secretIn(second.provisioningUrl), step())
  for (const wrong of [
    '000000',
    second.recoveryCodes[0] ?? '',
    codeAt(secretIn(first.provisioningUrl), step()),
  ])
    await expect(verify(wrong)).rejects.toMatchObject(invalid)
  await expect(enter(flow, code)).rejects.toMatchObject(invalid)
  expect(await verify(code)).toMatchObject({ isComplete: true, needsEnrollment: false })
  const answer = await finish(flow, mine.browser)
  expect(claimsOf(answer.access_token).amr).toEqual(['password', 'totp'])
  const ref = { kind: 'identities', id }
  expect(parsed((await one.entities.get({ ref, perspective: undefined }, system())).json)).toMatchObject({
    isMfaEnabled: true,
  })
})

test('a verified second factor is not enrolled again by a login', async () => {
  await protectedPerson('enrolled')
  const flow = await begun('enrolled')
  await expect(one.oidc.enrollSecondFactor(refOf(flow), client)).rejects.toMatchObject({ code: 'MFA_EXISTS' })
})

test('a token says when a code of the app was accepted, and completes the API session', async () => {
  const { id, secret, recoveryCodes } = await protectedPerson('proving')
  const flow = await begun('proving')
  await enter(flow, recoveryCodes[0] ?? '')
  const apiSessionId = String(claimsOf((await finish(flow)).access_token).z_asid)
  const caller = as({ identityId: id, apiSessionId })
  const passedAt = async () =>
    (
      await one.db.query<{ at: Date }>(sql`
        select mfa_passed_at as at from api_session where id = ${apiSessionId}`)
    ).rows[0]?.at.getTime() ?? 0
  const before = await passedAt()
  for (const code of ['000000', '', recoveryCodes[1] ?? ''])
    await expect(one.oidc.createTotpToken({ code }, caller)).rejects.toMatchObject(invalid)

  const code = codeAt(secret, step())
  const { token, issuedAtMs, position } = await two.oidc.createTotpToken({ code }, caller)
  expect(claimsOf(token)).toEqual({
    iss: 'https://localhost:1280/oidc',
    sub: id,
    aud: ['openziti'],
    iat: issuedAtMs / 1000,
    exp: issuedAtMs / 1000 + 86_400,
    jti: expect.any(String),
    z_asid: apiSessionId,
    z_t: 't',
  })
  expect(position).toMatchObject({ number: expect.any(Number) })
  expect(await passedAt()).toBeGreaterThan(before)
  await expect(one.oidc.createTotpToken({ code }, caller)).rejects.toMatchObject(invalid)
})

test('a token of a second factor is no access token, and its wrong codes are limited', async () => {
  const { id, secret } = await protectedPerson('guessed')
  const flow = await begun('guessed')
  await enter(flow, codeAt(secret, step()))
  const caller = as({
    identityId: id,
    apiSessionId: String(claimsOf((await finish(flow)).access_token).z_asid),
  })
  const { token } = await one.oidc.createTotpToken({ code: codeAt(secret, step() + 1) }, caller)
  await one.oidc.revokeToken({ clientId: 'openziti', token }, client)
  expect(await refreshed(one, token)).toMatchObject({ error: 'invalid_grant' })
  const guess = () => one.oidc.createTotpToken({ code: '000000' }, caller).catch((err: unknown) => err)
  let refused: unknown
  for (let n = 0; n < 11; n++) refused = await guess()
  expect(refused).toMatchObject({ code: 'SERVER_TOO_MANY_REQUESTS' })
})

test('only an API session of access tokens of an owner of a factor gets such a token', async () => {
  const id = await person(one, 'plain')
  const session = await one.identity.authenticate(
    login({ username: 'plain', password: 'right-one' }),
    system(),
  )
  const ask = (apiSessionId: string) =>
    one.oidc.createTotpToken({ code: '000000' }, as({ identityId: id, apiSessionId }))
  await expect(ask(session.id)).rejects.toMatchObject({ code: 'INVALID_BACKING_TOKEN_TYPE' })
  const apiSessionId = String(claimsOf((await logIn(one, 'plain')).access_token).z_asid)
  await expect(ask(apiSessionId)).rejects.toMatchObject({ code: 'MFA_NOT_ENROLLED' })
})

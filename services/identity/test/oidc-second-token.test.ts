import { afterAll, beforeAll, expect, test } from 'vitest'
import { certificateSigner, type TestSigner, token } from './external-tokens.js'
import { bytes, parsed, type Replica, system, type TestIdentity, testIdentity } from './identity.js'
import { claimsOf, client, codeRequest, person, policy, present, refreshed, start, tokens } from './oidc.js'

let identity: TestIdentity
let one: Replica
let two: Replica
let signer: TestSigner
let authPolicyId: string
beforeAll(async () => {
  identity = await testIdentity()
  one = await identity.replica()
  two = await identity.replica()
  signer = await certificateSigner(one)
  authPolicyId = await policy(one, 'with tokens', { requireExtJwtSigner: signer.id })
})
afterAll(() => identity[Symbol.asyncDispose]())

const byToken = (flow: { readonly id: string }, ...bearerTokens: string[]) =>
  present(two, flow, { method: 'ext-jwt', bearerTokens })

test('where the policy demands a token, the login asks for one of the same identity', async () => {
  const id = await person(one, 'doubted', { authPolicyId })
  const flow = await start(one)
  expect(await present(one, flow, { username: 'doubted' })).toMatchObject({
    isComplete: false,
    needsToken: true,
  })
  const ref = { id: flow.id, browser: '' }
  expect(await one.oidc.finishLogin(ref, client)).toMatchObject({ code: '' })
  const another = await person(one, 'another', { authPolicyId })
  for (const wrong of [await token(signer, { sub: another }), 'nothing'])
    await expect(byToken(flow, wrong)).rejects.toMatchObject({ code: 'INVALID_AUTH' })
  expect(await byToken(flow, await token(signer, { sub: id }))).toMatchObject({
    isComplete: true,
    needsToken: false,
  })

  const { code } = await two.oidc.finishLogin(ref, client)
  const answer = await tokens(one, codeRequest(flow, code))
  const { refresh_token, access_token } = answer
  const renewed = await refreshed(two, refresh_token)
  for (const one of [access_token, renewed.access_token])
    expect(claimsOf(one).amr).toEqual(['password', 'ejs'])
  const claims = { apiSessionId: String(claimsOf(access_token).z_asid), identityId: id }
  const session = await two.identity.getBearerSession(claims, client)
  expect(session).toMatchObject({ isPartial: false })
  expect(parsed(session.json)).toMatchObject({ authQueries: [] })
})

test('a token beside a password counts at once', async () => {
  const id = await person(one, 'prepared', { authPolicyId })
  const flow = await start(one)
  const bearerTokens = [await token(signer, { sub: id })]
  expect(await present(one, flow, { username: 'prepared', bearerTokens })).toMatchObject({ isComplete: true })
})

test('tokens of a signer that is disabled count no more, neither for sessions nor for logins', async () => {
  const switched = await certificateSigner(one)
  const id = await person(one, 'switched', {
    authPolicyId: await policy(one, 'with a switched signer', { requireExtJwtSigner: switched.id }),
  })
  const bearerTokens = [await token(switched, { sub: id })]
  const begun = async () => {
    const flow = await start(one)
    expect(await present(one, flow, { username: 'switched', bearerTokens })).toMatchObject({
      isComplete: true,
    })
    return { ...flow, code: (await one.oidc.finishLogin({ id: flow.id, browser: '' }, client)).code }
  }
  const [entered, coded, waiting] = [await begun(), await begun(), await start(one)]
  await present(one, waiting, { username: 'switched', bearerTokens })
  const { access_token } = await tokens(one, codeRequest(entered, entered.code))
  const isPartial = async () => {
    const claims = { apiSessionId: String(claimsOf(access_token).z_asid), identityId: id }
    return (await two.identity.getBearerSession(claims, client)).isPartial
  }
  expect(await isPartial()).toBe(false)

  const enable = (enabled: boolean) =>
    one.entities.update(
      { ref: { kind: 'external-jwt-signers', id: switched.id }, json: bytes({ enabled }), mask: ['enabled'] },
      system(),
    )
  await enable(false)
  expect(await isPartial()).toBe(true)
  expect(await tokens(one, codeRequest(coded, coded.code))).toEqual({ error: 'invalid_grant' })
  expect(await one.oidc.finishLogin({ id: waiting.id, browser: '' }, client)).toMatchObject({ code: '' })
  await enable(true)
  expect(await isPartial()).toBe(false)
})

import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { reapSessions } from '../src/jobs/housekeeping.js'
import { certificateSigner, loginByToken, person, type TestSigner, token } from './external-tokens.js'
import { bytes, parsed, type Replica, system, type TestIdentity, testIdentity } from './identity.js'

let identity: TestIdentity
let one: Replica
let signer: TestSigner
let sub: string
const lines: { readonly [fact: string]: unknown }[] = []
beforeAll(async () => {
  identity = await testIdentity()
  one = await identity.replica({ onRefusal: (facts) => void lines.push({ ...facts }) })
  signer = await certificateSigner(one)
})
afterAll(() => identity[Symbol.asyncDispose]())
beforeEach(async () => {
  sub = await person(one)
  lines.length = 0
})

const seconds = (from: number): number => Math.floor(Date.now() / 1000) + from

async function expectRefusal(reason: string, ...tokens: string[]): Promise<void> {
  await expect(loginByToken(one, ...tokens)).rejects.toMatchObject({ code: 'INVALID_AUTH' })
  expect(lines.at(-1)).toMatchObject({ method: 'ext-jwt', reason })
}

test('a token opens a session of the identity that it names', async () => {
  const session = await loginByToken(one, await token(signer, { sub }))
  expect(session).toMatchObject({ identityId: sub, isPartial: false })
  expect(parsed(session.json)).toMatchObject({ authenticatorId: `extJwtId:${signer.id}`, authQueries: [] })
  const found = await one.identity.getApiSession({ bearerTokens: [], token: session.token }, system())
  expect(found.id).toBe(session.id)
})

test.each([
  ['token expired', { exp: seconds(-10) }],
  ['token without expiry', { exp: undefined }],
  ['token not valid yet', { nbf: seconds(60) }],
  ['wrong audience', { aud: 'other' }],
  ['wrong audience', { aud: undefined }],
  ['unknown signer', { iss: 'https://other.example' }],
  ['malformed token', { iss: undefined }],
  ['missing claim', { sub: undefined }],
  ['missing claim', { sub: '' }],
  ['unknown', { sub: 'nobody' }],
  ['missing claim', { sub: 'a\u0000b' }],
] as const)('%s: %j is refused', async (reason, claims) => {
  await expectRefusal(reason, await token(signer, { sub, ...claims }))
})

test.each([
  ['unknown key', { kid: 'other' }],
  ['malformed token', { kid: undefined }],
  ['unsafe token', { jku: 'https://keys.example' }],
  ['unsafe token', { jwk: {} }],
  ['unsafe token', { x5c: [] }],
  ['unsafe token', { x5u: 'https://keys.example' }],
] as const)('%s: a header with %j is refused', async (reason, header) => {
  await expectRefusal(reason, await token(signer, { sub }, header))
})

test('clocks may differ by some seconds', async () => {
  await loginByToken(one, await token(signer, { sub, exp: seconds(-2), nbf: seconds(2) }))
})

test.each([
  [['a', 'b'], 'a, b'],
  [undefined, '(none)'],
])('the line about the audience %j names it and the one of the signer', async (aud, audience) => {
  await expectRefusal('wrong audience', await token(signer, { sub, aud }))
  expect(lines.at(-1)).toMatchObject({ audience, expectedAudience: 'network' })
})

test('a token of several audiences is accepted', async () => {
  await loginByToken(one, await token(signer, { sub, aud: ['other', 'network'] }))
})

test('a signature of another key is refused', async () => {
  const other = await certificateSigner(one)
  await expectRefusal('wrong signature', await token({ ...signer, privateKey: other.privateKey }, { sub }))
  expect(lines.at(-1)).toMatchObject({ signerId: signer.id, kid: signer.kid, issuer: signer.issuer })
})

test('of several tokens the first two are tried', async () => {
  const [good, bad] = [await token(signer, { sub }), await token(signer, { sub: 'nobody' })]
  expect(await loginByToken(one, bad, good)).toMatchObject({ identityId: sub })
  await expectRefusal('unknown', bad, 'not a token', good)
  expect(lines.at(-1)).toMatchObject({ otherToken: 'malformed token' })
  await expectRefusal('no token')
})

test('a claim of choice can name the external id of an identity', async () => {
  const byMail = await certificateSigner(one, { claimsProperty: 'email', useExternalId: true })
  const externalId = `${randomUUID()}@mail.example`
  const named = await person(one, { externalId })
  expect(await loginByToken(one, await token(byMail, { sub, email: externalId }))).toMatchObject({
    identityId: named,
  })
  await expectRefusal('unknown', await token(byMail, { sub, email: named }))
})

test('without a name of its own, the key of a certificate is named by its fingerprint', async () => {
  const plain = await certificateSigner(one, { kid: null })
  const { json } = await one.entities.get(
    { ref: { kind: 'external-jwt-signers', id: plain.id }, perspective: undefined },
    system(),
  )
  const { fingerprint } = parsed<{ fingerprint: string }>(json)
  expect(await loginByToken(one, await token({ ...plain, kid: fingerprint }, { sub }))).toMatchObject({
    identityId: sub,
  })
  await expectRefusal('unknown key', await token(plain, { sub }))
})

test('a disabled identity is refused', async () => {
  await one.identity.disableIdentity({ id: sub, durationMinutes: 0 }, system())
  await expectRefusal('disabled', await token(signer, { sub }))
})

const change = (kind: string, id: string, body: object, mask = Object.keys(body)) =>
  one.entities.update({ ref: { kind, id }, json: bytes(body), mask }, system())

async function policyWith(extJwt: object, secondary: object = { requireTotp: false }): Promise<string> {
  const cert = { allowed: true, allowExpiredCerts: true }
  const updb = {
    allowed: true,
    minPasswordLength: 5,
    requireSpecialChar: false,
    requireNumberChar: false,
    requireMixedCase: false,
    maxAttempts: 0,
    lockoutDurationMinutes: 0,
  }
  const body = { name: randomUUID(), primary: { cert, extJwt, updb }, secondary }
  return (await one.entities.create({ kind: 'auth-policies', json: bytes(body) }, system())).id
}

test('the auth policy decides whether tokens are allowed, and of which signers', async () => {
  const other = await certificateSigner(one)
  const policy = (extJwt: object) =>
    policyWith(extJwt).then((authPolicyId) => change('identities', sub, { authPolicyId }))
  await policy({ allowed: false, allowedSigners: [] })
  await expectRefusal('method not allowed', await token(signer, { sub }))
  await policy({ allowed: true, allowedSigners: [other.id] })
  await expectRefusal('signer not allowed', await token(signer, { sub }))
  await policy({ allowed: true, allowedSigners: [other.id, signer.id] })
  await loginByToken(one, await token(signer, { sub }))
})

const isOpen = (token: string) =>
  one.identity.getApiSession({ bearerTokens: [], token }, system()).then(
    () => true,
    () => false,
  )

test('a disabled signer admits no identity, and its sessions end', async () => {
  const brief = await certificateSigner(one)
  const session = await loginByToken(one, await token(brief, { sub }))
  await change('external-jwt-signers', brief.id, { enabled: false })
  expect(await isOpen(session.token)).toBe(false)
  await expectRefusal('unknown signer', await token(brief, { sub }))
})

test('sessions of a deleted signer end', async () => {
  const brief = await certificateSigner(one)
  const session = await loginByToken(one, await token(brief, { sub }))
  await one.entities.delete({ kind: 'external-jwt-signers', id: brief.id }, system())
  expect(await isOpen(session.token)).toBe(false)
})

const reap = () => reapSessions(one.changeLog, { idleMs: 1e9, lifetimeMs: 0 }, 100)

test.each([
  ['the method', { 'primary.extJwt.allowed': false }],
  ['the signer', { 'primary.extJwt.allowedSigners': [] as string[] }],
])('a policy that no longer allows %s ends sessions at once', async (_what, narrower) => {
  const other = await certificateSigner(one)
  const authPolicyId = await policyWith({ allowed: true, allowedSigners: [] })
  await change('identities', sub, { authPolicyId })
  const session = await loginByToken(one, await token(signer, { sub }))
  const [[leaf = '', value] = []] = Object.entries(narrower)
  const extJwt = { [leaf.split('.')[2] ?? '']: Array.isArray(value) ? [other.id] : value }
  await change('auth-policies', authPolicyId, { primary: { extJwt } }, [leaf])
  expect(await isOpen(session.token)).toBe(false)
  expect(await reap()).toContain(session.id)
})

test('the reaper deletes the sessions of a signer that is disabled, and of one that is deleted', async () => {
  const [off, gone] = [await certificateSigner(one), await certificateSigner(one)]
  const opened: string[] = []
  for (const each of [off, gone, signer])
    opened.push((await loginByToken(one, await token(each, { sub }))).id)
  await change('external-jwt-signers', off.id, { enabled: false })
  await one.entities.delete({ kind: 'external-jwt-signers', id: gone.id }, system())
  const ended = await reap()
  expect(opened.map((id) => ended.includes(id))).toEqual([true, true, false])
})

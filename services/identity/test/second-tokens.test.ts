import { randomUUID } from 'node:crypto'
import { CREDENTIALS, ownContext } from '@overlay/rpc'
import sql from 'sql-template-tag'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { reapSessions } from '../src/jobs/housekeeping.js'
import { certificateSigner, person, type TestSigner, token } from './external-tokens.js'
import {
  as,
  bytes,
  login,
  parsed,
  type Replica,
  system,
  type TestIdentity,
  testIdentity,
} from './identity.js'

let identity: TestIdentity
let one: Replica
let signer: TestSigner
let sub: string
let username: string
const lines: { readonly [fact: string]: unknown }[] = []
beforeAll(async () => {
  identity = await testIdentity()
  one = await identity.replica({ onRefusal: (facts) => void lines.push({ ...facts }) })
})
afterAll(() => identity[Symbol.asyncDispose]())

const create = async (kind: string, body: object): Promise<string> =>
  (await one.entities.create({ kind, json: bytes(body) }, system())).id
const change = (kind: string, id: string, body: object) =>
  one.entities.update({ ref: { kind, id }, json: bytes(body), mask: Object.keys(body) }, system())

/** Someone whose policy demands a token of the signer. */
async function demanding(requireExtJwtSigner: string): Promise<string> {
  const updb = {
    allowed: true,
    minPasswordLength: 5,
    requireSpecialChar: false,
    requireNumberChar: false,
    requireMixedCase: false,
    maxAttempts: 0,
    lockoutDurationMinutes: 0,
  }
  const primary = {
    cert: { allowed: true, allowExpiredCerts: true },
    extJwt: { allowed: true, allowedSigners: [] },
    updb,
  }
  const secondary = { requireTotp: false, requireExtJwtSigner }
  return create('auth-policies', { name: randomUUID(), primary, secondary })
}

beforeEach(async () => {
  signer = await certificateSigner(one, { externalAuthUrl: 'https://login.example/' })
  sub = await person(one, { authPolicyId: await demanding(signer.id) })
  username = randomUUID()
  await create('authenticators', { method: 'updb', identityId: sub, username, password: 'right-one' })
  lines.length = 0
})

const byPassword = (...bearerTokens: string[]) =>
  one.identity.authenticate(login({ username, password: 'right-one', bearerTokens }), system())
const withTokens = (session: { readonly token: string }, ...bearerTokens: string[]) =>
  one.identity.getApiSession({ token: session.token, bearerTokens }, system())

/** The session as routers get it, if they do. */
async function known(id: string): Promise<boolean> {
  for await (const { changes } of one.changes.load(
    { kinds: [CREDENTIALS] },
    ownContext(AbortSignal.timeout(5000)),
  ))
    if (changes.some((change) => change.id === id)) return true
  return false
}

const query = [{ httpUrl: 'https://login.example/', provider: 'url', typeId: 'EXT-JWT' }]

test('a session is partial without the token that its policy demands, and says where clients get it', async () => {
  const session = await byPassword()
  expect(session).toMatchObject({ isPartial: true, demandsToken: true, secondTokenMs: 0 })
  expect(parsed(session.json)).toMatchObject({ authQueries: query })
})

test('a token counts for the request that presents it, until it expires', async () => {
  const second = await token(signer, { sub })
  const session = await byPassword(second)
  expect(session.isPartial).toBe(false)
  expect(session.secondTokenMs).toBeGreaterThan(0)
  expect(session.secondTokenMs).toBeLessThanOrEqual(605_000)
  expect(await withTokens(session, second)).toMatchObject({ isPartial: false })
  expect(await withTokens(session)).toMatchObject({ isPartial: true, secondTokenMs: 0 })
})

test('a token of another identity, or of another signer, does not count', async () => {
  const [stranger, elsewhere] = [await person(one), await certificateSigner(one)]
  const session = await byPassword()
  expect(await withTokens(session, await token(signer, { sub: stranger }))).toMatchObject({ isPartial: true })
  expect(lines.at(-1)).toMatchObject({ method: 'second token', reason: 'other identity', identityId: sub })
  expect(await withTokens(session, await token(elsewhere, { sub }))).toMatchObject({ isPartial: true })
  expect(lines.at(-1)).toMatchObject({ reason: 'signer not allowed' })
  const expired = await token(signer, { sub, exp: 1 })
  expect(await withTokens(session, expired)).toMatchObject({ isPartial: true })
  expect(await withTokens(session, expired, await token(signer, { sub }))).toMatchObject({ isPartial: false })
})

test('an external id must be that of the identity', async () => {
  await change('external-jwt-signers', signer.id, { useExternalId: true })
  const session = await byPassword()
  expect(await withTokens(session, await token(signer, { sub }))).toMatchObject({ isPartial: true })
  await change('identities', sub, { externalId: sub.toUpperCase() })
  expect(await withTokens(session, await token(signer, { sub: sub.toUpperCase() }))).toMatchObject({
    isPartial: false,
  })
})

test('routers know the session while the token counts', async () => {
  const session = await byPassword()
  expect(await known(session.id)).toBe(false)
  await withTokens(session, await token(signer, { sub }))
  expect(await known(session.id)).toBe(true)
  await change('external-jwt-signers', signer.id, { enabled: false })
  expect(await known(session.id)).toBe(false)
  await change('external-jwt-signers', signer.id, { enabled: true })
  expect(await known(session.id)).toBe(true)
  await one.db.query(sql`update api_session set second_token_until = now() where id = ${session.id}`)
  expect(await known(session.id)).toBe(false)
})

test('routers are told when the token has expired', async () => {
  const session = await byPassword(await token(signer, { sub }))
  await one.db.query(sql`update api_session set second_token_until = now() where id = ${session.id}`)
  await one.db.query(sql`delete from credential_change`)
  await reapSessions(one.changeLog, { idleMs: 1e9, lifetimeMs: 0 }, 100)
  const { rows } = await one.db.query(sql`select from credential_change where api_session_id = ${session.id}`)
  expect(rows).toHaveLength(1)
})

test('a policy that demands another signer makes the session partial', async () => {
  const second = await token(signer, { sub })
  const session = await byPassword(second)
  const other = await certificateSigner(one)
  await change('identities', sub, { authPolicyId: await demanding(other.id) })
  expect(await withTokens(session, second)).toMatchObject({ isPartial: true })
  expect(await known(session.id)).toBe(false)
  await expect(
    one.identity.checkApiSession({ id: session.id }, as({ identityId: sub })),
  ).rejects.toMatchObject({
    code: 'UNAUTHORIZED',
  })
})

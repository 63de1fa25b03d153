import {
  createHash,
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type JsonWebKey,
  verify,
} from 'node:crypto'
import { noBus, openChangeLog } from '@overlay/store/change-log'
import pino from 'pino'
import sql from 'sql-template-tag'
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { signJwt } from '../src/domain/sign-jwt.js'
import type { TokenKeyRules } from '../src/domain/token-key-plan.js'
import { checkKeys } from '../src/keys/check-keys.js'
import { readTokenKeyring } from '../src/keys/keyring.js'
import { activateKey, prepareKey } from '../src/keys/operations.js'
import { tokenKeys } from '../src/store/token-keys.js'
import { context, keySecret, type Pki, startPki, tokenKeyRules } from './network.js'

const log = pino({ level: 'silent' })
const HOUR_MS = 3_600_000
const HOUR = 3600

let pki: Pki
beforeAll(async () => {
  pki = await startPki()
})
afterAll(() => pki[Symbol.asyncDispose]())

type Jwk = JsonWebKey & { readonly kid: string }

const check = (of: Pki, now: Date, rules: Partial<TokenKeyRules> = {}): Promise<void> =>
  checkKeys(
    {
      changeLog: of.changeLog,
      keySecret,
      rules: { hosts: undefined, tokens: { ...tokenKeyRules, ...rules } },
      log,
    },
    context,
    now,
  )

const sign = async (of: Pki, ...claims: readonly unknown[]): Promise<readonly string[]> => {
  const json = claims.map((one) => Buffer.from(JSON.stringify(one)))
  return (await of.pki.signTokens({ claims: json, addsHash: false }, context)).tokens
}

const publishedBy = async (of: Pki): Promise<readonly Jwk[]> => {
  const { jwks } = await of.pki.getTokenKeys({}, context)
  return (JSON.parse(Buffer.from(jwks).toString()) as { readonly keys: readonly Jwk[] }).keys
}

const headerOf = (token: string): Record<string, unknown> =>
  JSON.parse(Buffer.from(token.split('.')[0] ?? '', 'base64url').toString())

function isVerified(token: string, keys: readonly JsonWebKey[]): boolean {
  const [head, body, signature = ''] = token.split('.')
  const jwk = keys.find((key) => key.kid === headerOf(token).kid)
  if (!jwk) return false
  const key = createPublicKey({ key: jwk, format: 'jwk' })
  const input = Buffer.from(`${head}.${body}`)
  return verify('sha256', input, { key, dsaEncoding: 'ieee-p1363' }, Buffer.from(signature, 'base64url'))
}

const soon = (): number => Math.floor(Date.now() / 1000) + HOUR

const claimsOf = (token: string): Record<string, unknown> =>
  JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString())

test('the last token names the hash of the first one if that is asked for', async () => {
  const claims = ['a', 'b', 'c'].map((sub) => ({ sub, exp: soon() }))
  const json = claims.map((one) => Buffer.from(JSON.stringify(one)))
  const { tokens } = await pki.pki.signTokens({ claims: json, addsHash: true }, context)
  const hash = createHash('sha256')
    .update(tokens[0] ?? '')
    .digest()
    .subarray(0, 16)
    .toString('base64url')
  const [first, second, third] = claims
  expect(tokens.map(claimsOf)).toEqual([first, second, { ...third, at_hash: hash }])

  const alone = await pki.pki.signTokens({ claims: json.slice(0, 1), addsHash: true }, context)
  expect(alone.tokens.map(claimsOf)).toEqual([first])
})

test('tokens are signed by a published key that is not the one of the gateways or of sessions', async () => {
  const claims = [
    { sub: 'a', exp: soon() },
    { sub: 'ü', exp: soon() },
  ]
  const tokens = await sign(pki, ...claims)
  const keys = await publishedBy(pki)
  const { keyIds, sessionKeyIds } = await pki.pki.getTokenKeys({}, context)
  expect(tokens.map((token) => isVerified(token, keys))).toEqual([true, true])
  expect(tokens.map(headerOf)).toEqual(Array(2).fill({ alg: 'RS256', typ: 'JWT', kid: expect.any(String) }))
  expect(keyIds).toContain(headerOf(tokens[0] ?? '').kid)
  const bodies = tokens.map((token) =>
    JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString()),
  )
  expect(bodies).toEqual(claims)

  const { fingerprint } = await pki.pki.getServerCertificate({}, context)
  expect(keys.map(({ kid }) => kid)).toEqual([...keyIds, ...sessionKeyIds, fingerprint])
  expect(keys.map(({ alg, use }) => [alg, use])).toEqual([
    ['RS256', 'sig'],
    ['RS256', 'sig'],
    ['ES256', 'sig'],
    ['ES256', 'sig'],
    ['RS256', 'sig'],
  ])
})

test('the key that sessions signs with is published for its tokens only', async () => {
  const { keyId, keyPem, tokenMs, issuer } = await pki.pki.getSessionKey({}, context)
  const token = await signJwt({ key: createPrivateKey(keyPem), keyId }, { sub: 'a' })
  expect(headerOf(token)).toEqual({ alg: 'ES256', typ: 'JWT', kid: keyId })
  expect(isVerified(token, await publishedBy(pki))).toBe(true)
  const { keyIds, sessionKeyIds } = await pki.pki.getTokenKeys({}, context)
  expect(sessionKeyIds).toContain(keyId)
  expect(keyIds.filter((id) => sessionKeyIds.includes(id))).toEqual([])
  expect([tokenMs, issuer]).toEqual([90 * 24 * HOUR_MS, 'https://api.example:1280'])
})

test('a provided key of tokens of sessions becomes the next one', async () => {
  await using other = await startPki()
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const pem = privateKey.export({ type: 'pkcs8', format: 'pem' }) as string
  const deps = { changeLog: other.changeLog, keySecret, tokenKeyRules, context }
  const next = await prepareKey(deps, 'session', { privateKey: pem, certificate: undefined, chain: [] })
  expect([next.role, next.state, next.source, next.kind]).toEqual(['session', 'next', 'provided', 'P-256'])
  const { activated } = await activateKey(deps, 'session', { force: true })
  expect(activated.map(({ id }) => id)).toEqual([next.id])
  await expect
    .poll(async () => (await other.pki.getSessionKey({}, context)).keyId, { timeout: 10_000 })
    .toBe(next.id)
})

test('published keys have no private members', async () => {
  for (const key of await publishedBy(pki))
    expect(
      Object.keys(key).filter((member) => ['d', 'p', 'q', 'dp', 'dq', 'qi', 'k'].includes(member)),
    ).toEqual([])
})

test.each([
  ['outlives its key', [{ exp: Math.floor(Date.now() / 1000) + 25 * HOUR }]],
  ['does not expire', [{}]],
  ['is no object', ['text']],
  ['is null', [null]],
  ['is one of too many', Array(9).fill({ exp: 1 })],
  ['is too large', [{ exp: 1, text: 'x'.repeat(65_536) }]],
])('no token is signed that %s', async (_what, claims) => {
  await expect(sign(pki, ...claims)).rejects.toThrow(/exp|bytes|more than/)
})

test('a rotation of another replica is used, and its steps are in the change log and in the audit', async () => {
  await using other = await startPki()
  const [token = ''] = await sign(other, { exp: soon() })
  await using replica = await openChangeLog(other.changeLog.db, noBus, log)
  await check({ ...other, changeLog: replica }, new Date(Date.now() + 31 * 24 * HOUR_MS))
  await vi.waitFor(
    async () =>
      expect(headerOf((await sign(other, { exp: soon() }))[0] ?? '').kid).not.toBe(headerOf(token).kid),
    { timeout: 10_000 },
  )
  expect(isVerified(token, await publishedBy(other))).toBe(true)
  const states = ['active', 'next', 'retired', 'active', 'next'] // of each role
  const { rows: changes } = await other.changeLog.db.query<{ readonly entity: { readonly role: string } }>(
    sql`select entity from change where entity->>'role' in ('token', 'session') order by number`,
  )
  for (const which of ['token', 'session'])
    expect(changes.map(({ entity }) => entity).filter(({ role }) => role === which)).toEqual(
      states.map((state) => ({ role: which, state })),
    )
  const { rows: audited } = await other.changeLog.db.query<{ readonly text: string }>(
    sql`select row_to_json(audit)::text as text from audit where row_to_json(audit)::text ~ '"(token|session)"'`,
  )
  expect(audited).toHaveLength(2 * states.length)
  expect(JSON.stringify(audited)).not.toMatch(/PRIVATE KEY|public_jwk|publicJwk/)
})

describe('in a schema without keys of tokens,', () => {
  let other: Pki
  beforeAll(async () => {
    other = await startPki()
  })
  beforeEach(async () => {
    await other.changeLog.db.query(sql`delete from token_key`)
    await other.changeLog.db.query(sql`delete from session_key`)
  })
  afterAll(() => other[Symbol.asyncDispose]())

  test('replicas that start at the same time create one active and one next key', async () => {
    await Promise.all([1, 2, 3].map(() => check(other, new Date())))
    const keys = await tokenKeys(other.changeLog.db)
    expect(keys.map(({ role, state }) => `${role} ${state}`).sort()).toEqual([
      'session active',
      'session next',
      'token active',
      'token next',
    ])
  })

  test('through a rotation each token verifies with the keys of an hour ago and those of now', async () => {
    const rules = { periodMs: 12 * HOUR_MS, tokenMs: 5 * HOUR_MS }
    const start = Date.now()
    await check(other, new Date(start), rules)
    let before = (await readTokenKeyring(other.changeLog.db, keySecret)).jwks
    let tokens: readonly { readonly token: string; readonly end: number }[] = []
    const kids = new Set<unknown>()
    for (let time = start; time < start + 40 * HOUR_MS; time += HOUR_MS) {
      await check(other, new Date(time), rules)
      const { active, jwks } = await readTokenKeyring(other.changeLog.db, keySecret)
      const token = await signJwt({ key: active.key, keyId: active.id }, { exp: time })
      kids.add(active.id)
      expect(isVerified(token, before)).toBe(true)
      tokens = [...tokens, { token, end: time + rules.tokenMs }].filter(({ end }) => end > time)
      for (const one of tokens) expect(isVerified(one.token, jwks)).toBe(true)
      before = jwks
    }
    expect(kids.size).toBe(4)
    const states = (await tokenKeys(other.changeLog.db)).map(({ role, state }) => `${role} ${state}`).sort()
    const retired = Array(3).fill('session retired') // their tokens are valid for longer than the loop
    expect(states).toEqual([
      'session active',
      'session next',
      ...retired,
      'token active',
      'token next',
      'token retired',
    ])
  })

  test('keys from before the time that the operator sets are removed, with all that they have signed', async () => {
    await check(other, new Date())
    const { ids, sessionIds } = await readTokenKeyring(other.changeLog.db, keySecret)
    const since = new Date(Date.now() + 1000)
    await check(other, new Date(since.getTime() - 1), { since })
    expect((await readTokenKeyring(other.changeLog.db, keySecret)).ids).toEqual(ids)
    await check(other, since, { since })
    const after = await readTokenKeyring(other.changeLog.db, keySecret)
    expect(after.ids.filter((id) => ids.includes(id))).toEqual([])
    expect(after.sessionIds.filter((id) => sessionIds.includes(id))).toEqual([])
    await check(other, new Date(since.getTime() + HOUR_MS), { since })
    expect((await readTokenKeyring(other.changeLog.db, keySecret)).ids).toEqual(after.ids)
  })
})

test('private keys are encrypted, each under its own name', async () => {
  const { rows } = await pki.changeLog.db.query(
    sql`select row_to_json(token_key)::text as text from token_key union all select row_to_json(session_key)::text from session_key`,
  )
  expect(rows).toHaveLength(4)
  expect(JSON.stringify(rows)).not.toContain('PRIVATE KEY')
  await expect(
    readTokenKeyring(pki.changeLog.db, 'another secret of some thirty characters'),
  ).rejects.toThrow(/the key secret is not the one/)
})

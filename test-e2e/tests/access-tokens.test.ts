import { createHmac, createPublicKey, generateKeyPairSync, type JsonWebKey, sign, verify } from 'node:crypto'
import { withClient } from '@overlay/launcher/testing'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { accessTokens, type Tokens } from '../access-tokens.js'
import type { Admin } from '../admin.js'
import { type Client, openClient } from '../client.js'
import { type Network, startNetwork } from '../network.js'
import { totp } from '../totp.js'

const password = 'correct horse'

let network: Network
let admin: Admin
/** Of each gateway. */
let clients: readonly Client[]
let keys: Client
beforeAll(async () => {
  network = await startNetwork({ gateways: 2 })
  admin = await network.admin()
  const { caPem, gateways } = network
  clients = gateways.map((address) => openClient({ addresses: [address], caPem }, '/edge/client/v1'))
  keys = openClient({ addresses: gateways, caPem }, '/oidc')
})
afterAll(async () => {
  for (const client of [...clients, keys]) client[Symbol.dispose]()
  await network[Symbol.asyncDispose]()
})

let count = 0
/** An identity with a password, and its tokens. */
async function newUser(more: object = {}) {
  const username = `user-${count++}`
  const id = await admin.create('identities', { name: username, type: 'Default', isAdmin: false, ...more })
  await admin.create('authenticators', { method: 'updb', identityId: id, username, password })
  const logIn = (): Promise<Tokens> => accessTokens(network.gateways, network.caPem, { username, password })
  return { id, logIn, tokens: await logIn() }
}

const call = (client: Client, token: string, path = '/current-identity', method = 'GET') =>
  client.call(method, path, undefined, { authorization: `Bearer ${token}` })
/** What all gateways answer. */
const statuses = (token: string, path?: string): Promise<number[]> =>
  Promise.all(clients.map(async (client) => (await call(client, token, path)).status))

test('an access token is a session at every gateway, and refresh and id tokens are none', async () => {
  const { id, tokens } = await newUser()
  const { access } = tokens
  for (const client of clients) {
    const { body } = await call(client, access, '/current-api-session')
    expect(body.data).toMatchObject({
      token: access,
      identityId: id,
      authenticatorId: 'oidc',
      authQueries: [],
    })
  }
  for (const other of [tokens.refresh, tokens.id]) expect(await statuses(other)).toEqual([401, 401])
})

test('a code of the second factor buys a token that a published key verifies, and that opens nothing', async () => {
  const { id, tokens } = await newUser()
  const { access } = tokens
  const ask = (index: number, method: string, path: string, body?: object) =>
    (clients[index] ?? keys).call(method, path, body, { authorization: `Bearer ${access}` })
  await ask(0, 'POST', '/current-identity/mfa')
  const { provisioningUrl } = (await ask(0, 'GET', '/current-identity/mfa')).body.data as {
    provisioningUrl: string
  }
  const path = '/current-api-session/totp-token'
  await ask(0, 'POST', '/current-identity/mfa/verify', { code: totp(provisioningUrl, Date.now() - 30_000) })
  expect((await ask(1, 'POST', path, { code: '0' })).body).toMatchObject({
    error: { code: 'MFA_INVALID_TOKEN' },
  })
  const { status, body } = await ask(1, 'POST', path, { code: totp(provisioningUrl) })
  expect(status).toBe(200)
  const { token, issuedAt } = body.data as { readonly token: string; readonly issuedAt: string }

  const [head = '', claims = '', signature = ''] = token.split('.')
  const jwk = (await published()).find(({ kid }) => kid === decode(head).kid)
  if (!jwk) throw new Error('the key of the token is not published')
  const key = createPublicKey({ key: jwk, format: 'jwk' })
  expect(verify('sha256', Buffer.from(`${head}.${claims}`), key, Buffer.from(signature, 'base64url'))).toBe(
    true,
  )
  const { z_asid } = decode(access.split('.')[1])
  const iat = Date.parse(issuedAt) / 1000
  expect(decode(claims)).toMatchObject({ sub: id, aud: ['openziti'], iat, z_asid, z_t: 't' })
  expect(await statuses(token)).toEqual([401, 401])
})

test('disabling the identity ends it at every gateway, and enabling does not bring it back', async () => {
  const {
    id,
    tokens: { access },
    logIn,
  } = await newUser()
  expect(await statuses(access)).toEqual([200, 200])
  await admin.request('POST', `/identities/${id}/disable`, { durationMinutes: 5 })
  expect(await statuses(access)).toEqual([401, 401])
  await admin.request('POST', `/identities/${id}/enable`)
  expect(await statuses(access)).toEqual([401, 401])
  expect(await statuses((await logIn()).access)).toEqual([200, 200])
})

test('so does deleting it, and logging out at one gateway', async () => {
  const [deleted, left] = [await newUser(), await newUser()]
  for (const {
    tokens: { access },
  } of [deleted, left])
    expect(await statuses(access)).toEqual([200, 200])
  await admin.request('DELETE', `/identities/${deleted.id}`)
  expect(await statuses(deleted.tokens.access)).toEqual([401, 401])

  const [first] = clients
  if (!first) throw new Error('two gateways were started')
  const other = await left.logIn()
  expect((await call(first, left.tokens.access, '/current-api-session', 'DELETE')).status).toBe(200)
  expect((await call(first, left.tokens.access, '/current-api-session', 'DELETE')).status).toBe(401)
  await expect.poll(() => statuses(left.tokens.access)).toEqual([401, 401])
  expect(await statuses(other.access)).toEqual([200, 200])
})

test('a second factor that the policy demands later is missing, and a method that it forbids ends the session', async () => {
  const primary = {
    cert: { allowed: true, allowExpiredCerts: true },
    extJwt: { allowed: true, allowedSigners: [] },
    updb: {
      allowed: true,
      lockoutDurationMinutes: 0,
      maxAttempts: 0,
      minPasswordLength: 5,
      requireMixedCase: false,
      requireNumberChar: false,
      requireSpecialChar: false,
    },
  }
  const policy = { name: 'p', primary, secondary: { requireTotp: false, requireExtJwtSigner: null } }
  const authPolicyId = await admin.create('auth-policies', policy)
  const path = `/auth-policies/${authPolicyId}`
  const { access } = (await newUser({ authPolicyId })).tokens
  expect(await statuses(access)).toEqual([200, 200])
  await admin.request('PATCH', path, { secondary: { requireTotp: true } })
  await expect.poll(() => statuses(access)).toEqual([401, 401])
  expect(await statuses(access, '/current-api-session')).toEqual([200, 200])
  for (const client of clients) {
    const { body } = await call(client, access, '/current-api-session')
    expect(body.data).toMatchObject({ authQueries: [{ typeId: 'MFA' }], isMfaComplete: false })
  }
  await admin.request('PATCH', path, { primary: { ...primary, updb: { ...primary.updb, allowed: false } } })
  await expect.poll(() => statuses(access, '/current-api-session')).toEqual([401, 401])
})

const encode = (part: object): string => Buffer.from(JSON.stringify(part)).toString('base64url')
const decode = (part = ''): Record<string, unknown> => JSON.parse(Buffer.from(part, 'base64url').toString())
const published = async (): Promise<readonly JsonWebKey[]> =>
  ((await keys.call('GET', '/keys')).body as unknown as { keys: JsonWebKey[] }).keys

test('forged tokens are refused', async () => {
  const { access } = (await newUser()).tokens
  const [head, body, signature] = access.split('.')
  const header = decode(head)
  const jwk = (await published()).find(({ kid }) => kid === header.kid)
  if (!jwk) throw new Error('the key of the token is not published')
  const pem = createPublicKey({ key: jwk, format: 'jwk' }).export({ type: 'spki', format: 'pem' })
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const signed = (more: object, claims: object = {}): string => {
    const input = `${encode({ ...header, ...more })}.${encode({ ...decode(body), ...claims })}`
    return `${input}.${sign('sha256', Buffer.from(input), privateKey).toString('base64url')}`
  }
  const hmacInput = `${encode({ ...header, alg: 'HS256' })}.${body}`
  const gatewayKid = (await published()).find(({ kid }) => /^[0-9a-f]{40}$/.test(String(kid)))?.kid
  const forged = [
    `${head}.${encode({ ...decode(body), sub: 'other' })}.${signature}`,
    `${encode({ ...header, alg: 'none' })}.${body}.`,
    `${hmacInput}.${createHmac('sha256', pem).update(hmacInput).digest('base64url')}`,
    signed({}),
    signed({ kid: gatewayKid }),
    signed({ kid: 'own' }),
    signed({ jwk: createPublicKey(privateKey).export({ format: 'jwk' }), kid: undefined }),
    signed({}, { iss: 'https://other.example/oidc' }),
  ]
  for (const token of forged) expect(await statuses(token)).toEqual([401, 401])
  expect(await statuses(access)).toEqual([200, 200])
})

test('while keys are replaced, tokens of the key before stay valid', async () => {
  const user = await newUser()
  const before = user.tokens
  const kidOf = ({ access }: Tokens): unknown => decode(access.split('.')[0]).kid
  const kids = async () => (await published()).map(({ kid }) => kid)
  const old = await kids()
  await withClient(network.databaseUrl, (client) =>
    client.query(`
      update pki.token_key set created_at = created_at - interval '31 days',
             active_at = active_at - interval '31 days'`),
  )
  const pki = [...network.processes.keys()].find((name) => name.startsWith('pki')) ?? ''
  process.kill(network.processes.get(pki)?.pid() ?? 0, 'SIGKILL') // it checks its keys when it starts
  expect(await statuses(before.access, '/current-api-session')).toEqual([200, 200]) // gateways have the key
  let renewed = before
  const logIn = async (): Promise<unknown> => {
    renewed = await user.logIn().catch(() => before) // while pki is away
    return kidOf(renewed)
  }
  await expect.poll(logIn, { timeout: 30_000 }).not.toBe(kidOf(before))
  expect(old).toContain(kidOf(renewed)) // it was published before
  for (const { access } of [renewed, before])
    expect(await statuses(access, '/current-api-session')).toEqual([200, 200])
  await expect.poll(async () => (await kids()).filter((kid) => !old.includes(kid)).length).toBe(1)
})

test('without the bus, ended sessions are refused within seconds', async () => {
  const {
    id,
    tokens: { access },
  } = await newUser()
  expect(await statuses(access)).toEqual([200, 200])
  await network.bus.stop()
  try {
    await admin.request('POST', `/identities/${id}/disable`, { durationMinutes: 5 })
    await expect.poll(() => statuses(access), { timeout: 10_000 }).toEqual([401, 401])
  } finally {
    await network.bus.start()
  }
})

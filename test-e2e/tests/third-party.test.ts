import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { openClient } from '../client.js'
import { type Fixture, startFixture } from '../fixture.js'
import { AUDIENCE, startThirdParty, type ThirdParty } from '../third-party.js'

// Logins by tokens of an OpenID provider, through two gateways in turn.

let thirdParty: ThirdParty
let fixture: Fixture
let folder: string
let signerId: string
const device = 'device-7'
const stranger = 'device-8'
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'overlay-third-party-'))
  thirdParty = await startThirdParty([device, stranger])
  await chmod(folder, 0o755) // identity may be another user
  const ca = join(folder, 'ca.pem')
  await writeFile(ca, thirdParty.caPem)
  // processes inherit the environment of their launcher
  vi.stubEnv('OVERLAY_JWKS_CA', ca)
  vi.stubEnv('OVERLAY_JWKS_NETWORKS', '127.0.0.0/8,::1')
  fixture = await startFixture({ gateways: 2, identities: 2 })
  const { issuer, jwksEndpoint } = thirdParty
  const body = { name: 'third party', enabled: true, issuer, jwksEndpoint, audience: AUDIENCE }
  signerId = await fixture.admin.create('external-jwt-signers', { ...body, useExternalId: true })
})
afterAll(async () => {
  await fixture[Symbol.asyncDispose]()
  await thirdParty[Symbol.asyncDispose]()
  await rm(folder, { recursive: true })
  vi.unstubAllEnvs()
})

const bearer = (token: string) => ({ authorization: `Bearer ${token}` })
const logIn = (token: string) =>
  fixture.anonymous.call('POST', '/authenticate?method=ext-jwt', {}, bearer(token))

/** Tries until the product knows what the provider has published. */
const comesToBe = (status: number, token: string) =>
  expect.poll(async () => (await logIn(token)).status, { timeout: 20_000, interval: 200 }).toBe(status)

test('a provider signs logins, rotates its keys, goes away and comes back', async () => {
  const identityId = await fixture.createSample('identities', { externalId: device })
  const first = await thirdParty.tokenOf(device)
  for (let n = 0; n < 4; n++)
    expect(await logIn(first)).toMatchObject({
      status: 200,
      body: { data: { identityId, authenticatorId: `extJwtId:${signerId}` } },
    })
  expect((await logIn(await thirdParty.tokenOf(stranger))).status).toBe(401)

  await thirdParty.rotate()
  const second = await thirdParty.tokenOf(device)
  for (let n = 0; n < 4; n++) expect((await logIn(second)).status).toBe(200)
  expect((await logIn(first)).status).toBe(401)

  await thirdParty.leave()
  for (let n = 0; n < 4; n++) expect((await logIn(second)).status).toBe(200)
  await thirdParty.comeBack()
  await thirdParty.rotate()
  await comesToBe(200, await thirdParty.tokenOf(device))
})

test('a token beside a password counts for each request that presents it', async () => {
  const { primary } = (await fixture.sampleOf('auth-policies')) as { readonly primary: object }
  const secondary = { requireTotp: false, requireExtJwtSigner: signerId }
  const authPolicyId = await fixture.createSample('auth-policies', { primary, secondary })
  const externalId = stranger
  const { username } = await fixture.createUser({ authPolicyId, externalId })
  const [own, other] = [await thirdParty.tokenOf(stranger), await thirdParty.tokenOf(device)]

  const answer = (await fixture.logIn(username)).body.data as { readonly token: string }
  expect(answer).toMatchObject({ authQueries: [{ typeId: 'EXT-JWT', provider: 'url', httpUrl: '' }] })
  using client = openClient(fixture.server, '/edge/client/v1')
  client.use(answer.token)
  const statusWith = async (headers = {}) =>
    (await client.call('GET', '/current-identity', undefined, headers)).status
  for (let n = 0; n < 2; n++) {
    expect(await statusWith()).toBe(401)
    expect(await statusWith(bearer(other))).toBe(401)
    expect(await statusWith(bearer(own))).toBe(200)
  }

  const disabled = { enabled: false }
  await fixture.admin.request('PATCH', `/external-jwt-signers/${signerId}`, disabled)
  await expect.poll(() => statusWith(bearer(own))).toBe(401)
})

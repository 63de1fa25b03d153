import { createPrivateKey, generateKeyPairSync } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  EdgeError,
  EnrollmentCertsResponse,
  ExtendRouterRequest,
  ExtendRouterVerifyRequest,
  edgeType,
  type Message,
} from '@overlay/channel'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Authority, clientAuth, newAuthority } from '../authority.js'
import type { Certificate } from '../client.js'
import { keyAndRequest, logIn, type Member } from '../member.js'
import { rotate } from '../rotation.js'
import { startRouter, type TestRouter } from '../router/router.js'
import { startTraffic, type Traffic, until } from '../traffic.js'
import { type Answer, type Command, type EnrollingSdk, type Sdk, sdks, startSdks } from './enrolling.js'

let traffic: Traffic
let running: ReadonlyMap<Sdk, EnrollingSdk>
let factory: { readonly authority: Authority; readonly caId: string }
let folder: string
let count = 0

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'overlay-enrollment-'))
  running = await startSdks()
  // Each request goes to the other gateway if it opens a connection.
  traffic = await startTraffic({ gateways: 2 })
  await traffic.service('wiki')
  factory = await addFactory()
}, 600_000)
afterAll(async () => {
  for (const sdk of running?.values() ?? []) await sdk[Symbol.asyncDispose]()
  await traffic?.[Symbol.asyncDispose]()
  await rm(folder, { recursive: true })
})

/** A verified authority of a third party, whose certificates enroll in both ways. */
async function addFactory() {
  const { admin } = traffic
  const authority = await newAuthority('factory')
  const caId = await admin.create('cas', {
    name: 'factory',
    certPem: authority.cert,
    identityRoles: ['client'],
    isAuthEnabled: true,
    isAutoCaEnrollmentEnabled: true,
    isOttCaEnrollmentEnabled: true,
  })
  const { verificationToken } = await admin.request<{ verificationToken: string }>('GET', `/cas/${caId}`)
  const { cert } = await authority.certify(verificationToken)
  await admin.request('POST', `/cas/${caId}/verify`, cert)
  return { authority, caId }
}

async function written(name: string, content: string): Promise<string> {
  const file = join(folder, name)
  await writeFile(file, content)
  return file
}

type Enrollment = { readonly ott: true } | { readonly ottca: string } | { readonly updb: string }

/** An identity that may dial the service, and the file of its token. */
async function invite(enrollment: Enrollment): Promise<{ name: string; id: string; token: string }> {
  const { admin } = traffic
  const name = `member-${count++}`
  const body = { name, type: 'Device', isAdmin: false, roleAttributes: ['client'], enrollment }
  const id = await admin.create('identities', body)
  const identity = await admin.request<{ enrollment: Record<string, { jwt: string }> }>(
    'GET',
    `/identities/${id}`,
  )
  const [{ jwt = '' } = {}] = Object.values(identity.enrollment)
  return { name, id, token: await written(`${name}.jwt`, jwt) }
}

/** Enrolls, then logs in with what the SDK has stored. */
async function enrollAndLogIn(
  sdk: EnrollingSdk,
  command: Omit<Command, 'action' | 'service'>,
): Promise<Answer> {
  const { error } = await sdk.perform({ action: 'enroll', service: 'wiki', ...command })
  expect(error).toBeUndefined()
  return sdk.perform({ action: 'login', service: 'wiki', ...command })
}

const keys = ['RSA 4096', 'P-384', 'P-256'] as const
const oneTime = sdks.flatMap((sdk) =>
  keys.filter((key) => sdk.startsWith('go') || key === 'P-256').map((key) => [sdk, key] as const),
)

/** How the Go SDK comes to a key of this kind. */
async function keyOf(sdk: Sdk, key: (typeof keys)[number]): Promise<Partial<Command>> {
  if (!sdk.startsWith('go')) return {} // their own choice
  if (key === 'RSA 4096') return { keyAlg: 'RSA' }
  if (key === 'P-384') return { keyAlg: 'EC' }
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const pem = privateKey.export({ type: 'sec1', format: 'pem' }) as string
  return { keyFile: await written(`key-${count++}.pem`, pem) }
}

test.for(oneTime)('%s enrolls once by a token with a key of %s', async ([name, key], { skip }) => {
  const sdk = running.get(name) ?? skip()
  const { token, ...member } = await invite({ ott: true })
  const answer = await enrollAndLogIn(sdk, { token, ...(await keyOf(name, key)) })
  expect(answer.services).toEqual(['wiki'])
  if (name !== 'c') expect(answer.name).toBe(member.name)
  const again = await sdk.perform({ action: 'enroll', service: 'wiki', token, ...(await keyOf(name, key)) })
  expect(again.error).toBeDefined()
})

async function filesOf({ key, cert }: Certificate) {
  const number = count++
  const sec1 = createPrivateKey(key).export({ type: 'sec1', format: 'pem' }) as string
  return {
    keyFile: await written(`${number}.key`, sec1),
    certFile: await written(`${number}.cert`, cert),
  }
}

const withCertificates = sdks.filter((sdk) => sdk !== 'jvm')

test.for(withCertificates)(
  '%s enrolls by a token and a certificate of a third party',
  async (name, { skip }) => {
    const sdk = running.get(name) ?? skip()
    const { token } = await invite({ ottca: factory.caId })
    const certificate = await factory.authority.certify('device', { purpose: clientAuth })
    expect(await enrollAndLogIn(sdk, { token, ...(await filesOf(certificate)) })).toMatchObject({
      services: ['wiki'],
    })
  },
)

test.for(withCertificates)('%s enrolls by a certificate of a third party alone', async (name, { skip }) => {
  const sdk = running.get(name) ?? skip()
  const jwt = await traffic.admin.request<string>('GET', `/cas/${factory.caId}/jwt`)
  const token = await written(`${name}.factory.jwt`, jwt)
  const certificate = await factory.authority.certify(`robot of ${name}`, { purpose: clientAuth })
  const answer = await enrollAndLogIn(sdk, { token, ...(await filesOf(certificate)) })
  expect(answer.services).toEqual(['wiki'])
  if (name !== 'c') expect(answer.name).toBe(`factory-robot of ${name}`)
})

test('go-1.2.3 enrolls by a password', async ({ skip }) => {
  const sdk = running.get('go-1.2.3') ?? skip()
  const username = `user-${count++}`
  const { token, name } = await invite({ updb: username })
  const answer = await enrollAndLogIn(sdk, { token, username, password: 'correct horse' })
  expect(answer).toEqual({ name, services: ['wiki'] })
})

const REPEAT_MS = 10_000

describe.each(['signing', 'root', 'server'] as const)('after another %s key', (role) => {
  const before = new Map<Sdk, Command>()
  let member: Member
  let router: TestRouter
  const issued: Message[] = []

  beforeAll(async () => {
    for (const [name, sdk] of running) {
      const command = { ...(await invite({ ott: true })), action: 'login', service: 'wiki' } as const
      expect(await sdk.perform({ ...command, action: 'enroll', keyAlg: 'EC' })).toMatchObject({
        services: ['wiki'],
      })
      before.set(name, command)
    }
    member = await traffic.member(`before ${role}`, 'client')
    router = await traffic.router(`before ${role}`, {
      observe: (message) => message.type === edgeType.enrollmentCerts && issued.push(message),
    })
    await rotate(traffic.network, role)
  })

  test.for(sdks)('an identity that %s has enrolled before keeps working', async (name, { skip }) => {
    const sdk = running.get(name) ?? skip()
    const command = before.get(name) ?? skip()
    if (name.startsWith('go')) {
      const answer = await sdk.perform({ ...command, action: 'continue' })
      expect(answer).toMatchObject({ services: ['wiki'] })
    }
    expect(await sdk.perform(command)).toMatchObject({ services: ['wiki'] })
  })

  test.for(sdks)('%s enrolls', async (name, { skip }) => {
    const sdk = running.get(name) ?? skip()
    const { token } = await invite({ ott: true })
    expect(await enrollAndLogIn(sdk, { token, keyAlg: 'EC' })).toMatchObject({ services: ['wiki'] })
  })

  test('an identity extends its certificate, and logs in with the new one at both gateways', async () => {
    const { network } = traffic
    const both = { addresses: network.gateways, caPem: network.caPem }
    using session = await logIn(both, member.id, member.certificate)
    const [{ id } = { id: '' }] = await session.request<{ id: string }[]>(
      'GET',
      '/current-identity/authenticators',
    )
    const { csr, key } = await keyAndRequest(member.id)
    const path = `/current-identity/authenticators/${id}`
    const { clientCert } = await session.request<{ clientCert: string }>('POST', `${path}/extend`, {
      clientCertCsr: csr,
    })
    await session.request('POST', `${path}/extend-verify`, { clientCert })
    for (const address of network.gateways) {
      const server = { addresses: [address], caPem: network.caPem }
      const again = await logIn(server, member.id, { key, cert: clientCert })
      expect(await again.services()).toEqual(['wiki'])
      await expect(logIn(server, member.id, member.certificate)).rejects.toThrow('INVALID_AUTH')
    }
  })

  test('a router stays connected, renews its certificates, and connects with them', async () => {
    const [controller] = router.controllers.all()
    if (!controller) throw new Error('the router has been disconnected')
    const { csr, key } = await keyAndRequest(router.id, { names: [{ type: 'dns', value: 'localhost' }] })
    const request = { clientCertCsr: csr, serverCertCsr: csr, requireVerification: true }
    const body = ExtendRouterRequest.encode(request).finish()
    let askedAt = Number.NEGATIVE_INFINITY
    const { body: certificates } = await until(() => {
      // as routers do while there is no answer
      if (performance.now() - askedAt > REPEAT_MS && issued.length === 0) {
        controller.channel.send({ type: edgeType.extendRouter, body })
        askedAt = performance.now()
      }
      return issued[0]
    })
    const { clientCertPem, serverCertPem, caCertsPem } = EnrollmentCertsResponse.decode(certificates)
    const answer = await controller.channel.request(
      {
        type: edgeType.extendRouterVerify,
        body: ExtendRouterVerifyRequest.encode({ clientCertPem }).finish(),
      },
      30_000,
    )
    expect(EdgeError.decode(answer.body).code).toBe('')
    await router[Symbol.asyncDispose]()
    const identity = {
      ...router.identity,
      client: { key, cert: clientCertPem },
      server: { key, cert: serverCertPem },
      caPem: caCertsPem,
    }
    await using again = await startRouter({ identity, controllers: traffic.network.controllers })
    await until(() => again.controllers.any() !== undefined)
  })
})

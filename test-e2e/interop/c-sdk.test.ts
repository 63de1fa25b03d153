import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { Admin } from '../admin.js'
import { startNetwork } from '../network.js'
import { type Application, startApplication } from './application.js'
import { cSdk, pythonWith } from './python.js'

const intercept = { protocols: ['tcp'], addresses: ['wiki.example'], portRanges: [{ low: 80, high: 80 }] }

test('the C SDK enrolls, logs in, receives its service and dials it', {
  timeout: 300_000,
}, async ({ skip, onTestFailed }) => {
  const python = await pythonWith(cSdk).catch((err: unknown) => {
    if (process.env.CI === 'true') throw err
    console.warn(`skipped, because there is no Python with ${cSdk}: ${err}`)
    return skip()
  })
  await using network = await startNetwork({ shared: true })
  const admin = await network.admin()
  const { identityId, serviceId, jwt } = await permitDial(admin)

  await using sdk = await application(python, jwt, ['wiki', 'wiki.example', '80'])
  onTestFailed(() => console.error(sdk.log()))

  expect(await sdk.next()).toMatchObject({
    sdk: '0.29.3',
    service: {
      id: serviceId,
      name: 'wiki',
      encryptionRequired: true,
      permissions: ['Dial'],
      config: { 'intercept.v1': intercept },
    },
  })
  expect(await admin.request('GET', `/identities/${identityId}`)).toMatchObject({
    hasApiSession: true,
    enrollment: {},
    sdkInfo: { type: 'ziti-sdk-c', version: expect.stringMatching(/^0\.29\.3/) },
  })
  const sessions = () => admin.request('GET', `/sessions?filter=service="${serviceId}"`)
  await expect.poll(sessions).toMatchObject([{ type: 'Dial', identityId }])
})

/** Lets an identity dial a service. */
async function permitDial(admin: Admin): Promise<{ identityId: string; serviceId: string; jwt: string }> {
  const [type] = await admin.request<{ id: string }[]>('GET', '/config-types?filter=name="intercept.v1"')
  const config = { name: 'wiki', configTypeId: type?.id, data: intercept }
  const configId = await admin.create('configs', config)
  const serviceId = await admin.create('services', {
    name: 'wiki',
    encryptionRequired: true,
    configs: [configId],
    roleAttributes: ['web'],
  })
  const routerId = await admin.create('edge-routers', { name: 'router' })
  const identityId = await admin.create('identities', {
    name: 'alice',
    type: 'Device',
    isAdmin: false,
    enrollment: { ott: true },
    roleAttributes: ['staff'],
  })
  const [semantic, identityRoles] = ['AnyOf', ['#staff']]
  const [serviceRoles, edgeRouterRoles] = [['#web'], [`@${routerId}`]]
  const name = 'staff-web'
  await admin.create('service-policies', { name, type: 'Dial', semantic, identityRoles, serviceRoles })
  await admin.create('edge-router-policies', { name, semantic, identityRoles, edgeRouterRoles })
  await admin.create('service-edge-router-policies', { name, semantic, serviceRoles, edgeRouterRoles })
  const { enrollment } = await admin.request<{ enrollment: { ott: { jwt: string } } }>(
    'GET',
    `/identities/${identityId}`,
  )
  return { identityId, serviceId, jwt: enrollment.ott.jwt }
}

/** Runs the program next to this file until disposed. */
async function application(python: string, jwt: string, args: readonly string[]): Promise<Application> {
  const folder = await mkdtemp(join(tmpdir(), 'overlay-sdk-'))
  const [token, identity] = [join(folder, 'token.jwt'), join(folder, 'identity.json')]
  await writeFile(token, jwt)
  const program = join(import.meta.dirname, 'c-sdk.py')
  const env = { ZITI_LOG: '4' }
  const running = startApplication(python, [program, token, identity, ...args], { env, timeoutMs: 60_000 })
  return {
    ...running,
    async [Symbol.asyncDispose]() {
      await running[Symbol.asyncDispose]()
      await rm(folder, { recursive: true })
    },
  }
}

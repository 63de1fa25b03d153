import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Admin } from '../admin.js'
import { openClient } from '../client.js'
import { type Network, startNetwork } from '../network.js'

let network: Network
let admin: Admin
beforeAll(async () => {
  network = await startNetwork({ replicas: 1 })
  admin = await network.admin()
})
afterAll(() => network[Symbol.asyncDispose]())

const lines = async (): Promise<{ service: string; msg: string }[]> => {
  const text = await readFile(join(network.home, 'overlay.log'), 'utf8')
  return text
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line))
}

test('all components share a process, and each writes log lines of its own', async () => {
  expect([...network.processes.keys()]).toEqual(['overlay'])
  const ready = (await lines()).filter(({ msg }) => msg === 'ready').map(({ service }) => service)
  expect(ready.sort()).toEqual(['gateway', 'identity', 'pki', 'policy', 'sessions'])
})

test('all components share a connection to the bus', async () => {
  expect((await lines()).filter(({ msg }) => msg === 'bus connected')).toHaveLength(1)
})

test('a policy shows a service to an enrolled endpoint, and takes it away', async () => {
  const alice = await admin.enroll({ name: 'alice', roleAttributes: ['staff'] })
  const serviceId = await admin.create('services', { name: 'wiki', encryptionRequired: true })
  expect(await alice.services()).toEqual([])
  const policy = await admin.create('service-policies', {
    name: 'staff-dial-wiki',
    type: 'Dial',
    semantic: 'AnyOf',
    identityRoles: ['#staff'],
    serviceRoles: [`@${serviceId}`],
  })
  expect(await alice.services()).toEqual(['wiki'])
  await admin.request('DELETE', `/service-policies/${policy}`)
  expect(await alice.services()).toEqual([])
})

test('the status page has one row for what the process counts, and one for each service', async () => {
  const client = openClient({ addresses: [network.address], caPem: network.caPem }, '')
  const { token } = await openClient(
    { addresses: [network.address], caPem: network.caPem },
    '/edge/management/v1',
  ).request<{ token: string }>('POST', '/authenticate?method=password', {
    username: 'admin',
    password: 'correct horse',
  })
  client.use(token)
  const { replicas, attention } = await client.request<{
    replicas: { service: string; answers: boolean; process: string; position?: number }[]
    attention: object[]
  }>('GET', '/status')
  expect(replicas.map(({ service }) => service)).toEqual([
    'all components',
    'identity',
    'pki',
    'policy',
    'sessions',
  ])
  expect(new Set(replicas.map(({ process }) => process)).size).toBe(1)
  expect(replicas.find(({ service }) => service === 'identity')?.position).toBeGreaterThan(0)
  expect(attention).toEqual([])
})

test('a killed process is restarted, and acknowledged writes and sessions are kept', async () => {
  const id = await admin.create('services', { name: 'before', encryptionRequired: true })
  const killed = network.processes.get('overlay')?.pid() ?? 0
  process.kill(killed, 'SIGKILL')
  await expect.poll(() => network.processes.get('overlay')?.pid()).not.toBe(killed)
  const read = async () => (await admin.call('GET', `/services/${id}`).catch(() => undefined))?.status
  await expect.poll(read).toBe(200)
})

test('the process stops in order', async () => {
  await network.stop()
  const bad = (await lines()).filter(
    (line) => 'err' in line || ('level' in line && ['warn', 'error', 'fatal'].includes(String(line.level))),
  )
  expect(bad).toEqual([])
})

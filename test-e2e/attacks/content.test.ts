import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Admin } from '../admin.js'
import { type Client, openClient } from '../client.js'
import { type Network, startNetwork } from '../network.js'

const password = 'correct horse'

let count = 0
const newName = (): string => `n-${count++}`

let network: Network
let admin: Admin
beforeAll(async () => {
  network = await startNetwork({ gateways: 2, policies: 2 })
  admin = await network.admin(network.gateways[0] ?? '')
  await admin.create('edge-routers', { name: newName() })
  const all = { semantic: 'AnyOf', edgeRouterRoles: ['#all'] }
  await admin.create('edge-router-policies', { ...all, name: newName(), identityRoles: ['#all'] })
  await admin.create('service-edge-router-policies', { ...all, name: newName(), serviceRoles: ['#all'] })
})
afterAll(() => network[Symbol.asyncDispose]())

/** An identity with this role, logged in with its password at the last gateway. */
async function member(role: string): Promise<Client & { readonly id: string }> {
  const username = `user-${newName()}`
  const id = await admin.create('identities', {
    name: username,
    type: 'Device',
    isAdmin: false,
    roleAttributes: [role],
  })
  await admin.create('authenticators', { method: 'updb', identityId: id, username, password })
  const client = openClient(
    { addresses: network.gateways.slice(-1), caPem: network.caPem },
    '/edge/client/v1',
  )
  const login = { username, password, configTypes: ['all'] }
  const { token } = await client.request<{ token: string }>('POST', '/authenticate?method=password', login)
  client.use(token)
  return { ...client, id }
}

/** A service that all identities with the role may dial. */
async function serviceFor(role: string, more: object = {}): Promise<string> {
  const name = newName()
  const id = await admin.create('services', { name, encryptionRequired: true, ...more })
  await admin.create('service-policies', {
    name,
    type: 'Dial',
    semantic: 'AnyOf',
    identityRoles: [`#${role}`],
    serviceRoles: [`@${id}`],
  })
  return id
}

test('a private config of one identity is visible to no other, in any order of lists and writes', async () => {
  const role = newName()
  const [{ id: type } = { id: '' }] = await admin.request<{ id: string }[]>(
    'GET',
    `/config-types?filter=${encodeURIComponent('name="host.v1"')}`,
  )
  const config = (address: string) =>
    admin.create('configs', {
      name: newName(),
      configTypeId: type,
      data: { protocol: 'tcp', address, port: 80 },
    })
  const serviceId = await serviceFor(role, { configs: [await config('everybody')] })
  const own = { serviceId, configId: await config('alice') }
  const [alice, bob] = [await member(role), await member(role)]
  const seenBy = async (client: Client, limit: number): Promise<string | undefined> => {
    const [service] = await client.request<{ config: { 'host.v1': { address: string } } }[]>(
      'GET',
      `/services?limit=${limit}`,
    )
    return service?.config['host.v1'].address
  }
  await expect.poll(() => seenBy(bob, 9)).toBe('everybody')

  for (let round = 0; round < 40; round++) {
    const limit = 10 + round // a page of its own
    await Promise.all([seenBy(alice, 9), seenBy(bob, 9)])
    const listing = (async () => {
      for (let turn = 0; turn < 1 + (round % 8); turn++) await seenBy(alice, 9) // later, by requests that are answered
      return seenBy(alice, limit)
    })()
    await Promise.all([admin.request('POST', `/identities/${alice.id}/service-configs`, [own]), listing])
    expect([round, await seenBy(bob, limit)]).toEqual([round, 'everybody'])
    await expect.poll(() => seenBy(alice, limit)).toBe('alice')
    expect([round, await seenBy(bob, limit)]).toEqual([round, 'everybody'])
    await admin.request('DELETE', `/identities/${alice.id}/service-configs`, [own])
    await expect.poll(() => seenBy(alice, 9)).toBe('everybody')
  }
})

test('posture of any size makes no change that followers cannot receive', async () => {
  const role = newName()
  const serviceId = await serviceFor(role)
  const [alice, bob] = [await member(role), await member(role)]
  const checkId = await admin.create('posture-checks', {
    name: newName(),
    typeId: 'PROCESS',
    process: { osType: 'Linux', path: '/a' },
  })
  const bulk = (count: number, from: number) =>
    alice.call(
      'POST',
      '/posture-response-bulk',
      Array.from({ length: count }, (_, n) => ({
        id: checkId,
        typeId: 'PROCESS',
        path: '\u0001'.repeat(4000) + (from + n),
        isRunning: true,
        signerFingerprints: Array(64).fill('a'.repeat(255)),
      })),
    )
  expect((await bulk(1, 0)).status).toBe(201)
  for (let turn = 0; turn < 3; turn++)
    expect(await bulk(20, turn * 20)).toMatchObject({
      status: 400,
      body: { error: { code: 'COULD_NOT_VALIDATE', cause: { field: 'postureResponse' } } },
    })
  const empty = { id: checkId, typeId: 'PROCESS' }
  expect((await alice.call('POST', '/posture-response-bulk', Array(501).fill(empty))).status).toBe(400)
  expect((await alice.call('POST', '/posture-response-bulk', Array(500).fill(empty))).status).toBe(201)

  const before = await bob.request<{ id: string }>('POST', '/sessions', { serviceId, type: 'Dial' })
  await admin.request('PATCH', `/identities/${bob.id}`, { roleAttributes: [] })
  await expect.poll(() => admin.call('GET', `/sessions/${before.id}`)).toMatchObject({ status: 404 })
})

test('rows with large tags leave lists readable, and lists of large rows are complete', async () => {
  const role = newName()
  const serviceId = await serviceFor(role)
  const alice = await member(role)
  const tags = Object.fromEntries(Array.from({ length: 15_000 }, (_, n) => [`k${n}`, 'x'.repeat(50)]))
  const open = (tags: object) => alice.call('POST', '/sessions', { serviceId, type: 'Dial', tags })
  expect(await open(tags)).toMatchObject({ status: 400, body: { error: { cause: { field: 'tags' } } } })
  expect(await open({ k: 'x'.repeat(20_000) })).toMatchObject({ status: 400 })
  expect(await open({ k: 'x'.repeat(15_000) })).toMatchObject({ status: 201 })
  expect(await admin.call('GET', '/sessions?limit=500')).toMatchObject({ status: 200 })

  const configTypeId = await admin.create('config-types', { name: newName() })
  const ids: string[] = []
  for (let n = 0; n < 70; n++)
    ids.push(
      await admin.create('configs', { name: newName(), configTypeId, data: { of: 'x'.repeat(250_000) } }),
    )
  const { status, body } = await admin.call(
    'GET',
    `/configs?limit=500&${new URLSearchParams({ filter: `type="${configTypeId}" sort by createdAt` })}`,
  )
  expect([status, body.meta.pagination]).toEqual([200, { limit: 500, offset: 0, totalCount: 70 }])
  expect((body.data as { id: string }[]).map(({ id }) => id)).toEqual(ids)
})

test('no schema of a config type ends or blocks policy', async () => {
  const role = newName()
  const serviceId = await serviceFor(role)
  const alice = await member(role)
  const running = () => [...network.processes.values()].map((one) => one.pid())
  const before = running()
  const type = (schema: object) =>
    admin.create('config-types', { name: newName(), schema: { type: 'object', ...schema } })
  const config = (configTypeId: string, data: object) =>
    admin.call('POST', '/configs', { name: newName(), configTypeId, data })
  const deep = JSON.parse(`${'{"a":'.repeat(150)}{}${'}'.repeat(150)}`) as object
  for (const [schema, data] of [
    [{ $async: true, required: ['x'] }, { y: 1 }],
    [{ properties: { a: { pattern: '^(a+)+$' } } }, { a: `${'a'.repeat(1000)}!` }],
    [{ properties: { a: { allOf: [{ $ref: '#' }, { $ref: '#' }] } } }, deep],
    [{ allOf: [{ $ref: '#' }] }, { a: 1 }],
  ] as const)
    expect(await config(await type(schema), data)).toMatchObject({ status: 400 })
  expect(await alice.call('POST', '/sessions', { serviceId, type: 'Dial' })).toMatchObject({ status: 201 })
  expect(running()).toEqual(before)
})

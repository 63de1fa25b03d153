import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Admin } from '../admin.js'
import { type Client, openClient } from '../client.js'
import { type Network, startNetwork } from '../network.js'

const password = 'correct horse'

let network: Network
let admin: Admin
beforeAll(async () => {
  network = await startNetwork({ gateways: 2, policies: 2 })
  admin = await network.admin(network.gateways[0] ?? '')
})
afterAll(() => network[Symbol.asyncDispose]())

let made = 0
const newName = (): string => `n-${made++}`

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
  const { token } = await client.ask<{ token: string }>('POST', '/authenticate?method=password', login)
  client.use(token)
  return { ...client, id }
}

/** A service that everybody with the role may dial. */
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

test("a config that is one identity's own is shown to nobody else, however lists and writes interleave", async () => {
  const role = newName()
  const [{ id: type } = { id: '' }] = await admin.ask<{ id: string }[]>(
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
    const [service] = await client.ask<{ config: { 'host.v1': { address: string } } }[]>(
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
    await Promise.all([admin.ask('POST', `/identities/${alice.id}/service-configs`, [own]), listing])
    expect([round, await seenBy(bob, limit)]).toEqual([round, 'everybody'])
    await expect.poll(() => seenBy(alice, limit)).toBe('alice')
    expect([round, await seenBy(bob, limit)]).toEqual([round, 'everybody'])
    await admin.ask('DELETE', `/identities/${alice.id}/service-configs`, [own])
    await expect.poll(() => seenBy(alice, 9)).toBe('everybody')
  }
})

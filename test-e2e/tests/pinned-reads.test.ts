import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Admin } from '../admin.js'
import { openClient } from '../client.js'
import { type Network, startNetwork } from '../network.js'

const password = 'correct horse'
const WRITES = Number(process.env.OVERLAY_TEST_PINNED_WRITES ?? 60) // of each writer while the bus is in one state
const READERS = 3 // of each writer
/** A list whose wait for memory has timed out may be older. */
const WAIT_MS = 2000
/** A list shows the number of a write as the bits for which there is a service. */
const BITS = 6

let network: Network
beforeAll(async () => {
  network = await startNetwork({ replicas: 2 })
})
afterAll(() => network[Symbol.asyncDispose]())

interface Writer {
  /** Writes the bits of the number. */
  write(bits: readonly number[]): Promise<unknown>
  /** The token of an identity whose list shows them. */
  readonly token: string
  readonly address: string
  readonly name: string
}

const bitsOf = (number: number): number[] =>
  Array.from({ length: BITS }, (_, bit) => bit).filter((bit) => (number >> bit) & 1)

/** Connections to the address are those of one process. */
async function logIn(address: string, username: string): Promise<string> {
  using client = openClient({ addresses: [address], caPem: network.caPem }, '/edge/client/v1')
  const path = '/authenticate?method=password'
  return (await client.request<{ token: string }>('POST', path, { username, password })).token
}

/** An identity, and a service for each bit. */
async function makeOwn(admin: Admin, name: string, roleAttributes: readonly string[]) {
  const identityId = await admin.create('identities', { name, type: 'User', isAdmin: false, roleAttributes })
  await admin.create('authenticators', { method: 'updb', identityId, username: name, password })
  const services: string[] = []
  for (const bit of bitsOf(2 ** BITS - 1))
    services.push(
      await admin.create('services', {
        name: `${name} ${bit}`,
        encryptionRequired: true,
        roleAttributes: [`${name}-${bit}`],
      }),
    )
  return { identityId, services }
}

const rolesOf = (name: string, bits: readonly number[]): string[] => bits.map((bit) => `${name}-${bit}`)

/** Changes which services a policy names, in the schema of policy. */
async function policyWriter(admin: Admin, address: string, name: string): Promise<Writer> {
  const { identityId, services } = await makeOwn(admin, name, [])
  const grant = { type: 'Dial', semantic: 'AnyOf', identityRoles: [`@${identityId}`], serviceRoles: [] }
  const id = await admin.create('service-policies', { name, ...grant })
  return {
    name,
    address,
    token: await logIn(address, name),
    write: (bits) =>
      admin.request('PATCH', `/service-policies/${id}`, {
        serviceRoles: bits.map((bit) => `@${services[bit]}`),
      }),
  }
}

/** Changes the attributes of the identity, in the schema of identity. */
async function identityWriter(admin: Admin, address: string, name: string): Promise<Writer> {
  const { identityId } = await makeOwn(admin, name, [])
  for (const role of rolesOf(name, bitsOf(2 ** BITS - 1)))
    await admin.create('service-policies', {
      name: role,
      type: 'Dial',
      semantic: 'AnyOf',
      identityRoles: [`#${role}`],
      serviceRoles: [`#${role}`],
    })
  return {
    name,
    address,
    token: await logIn(address, name),
    write: (bits) =>
      admin.request('PATCH', `/identities/${identityId}`, { roleAttributes: rolesOf(name, bits) }),
  }
}

interface StaleList {
  readonly writer: string
  readonly shown: number
  readonly acknowledged: number
  readonly started: number
}

/** Writes one number after the other, while readers of the same process list. Returns the lists that are too old or too new. */
async function hammer({ write, token, address, name }: Writer, from: number): Promise<readonly StaleList[]> {
  const stale: StaleList[] = []
  let [started, acknowledged, lists] = [from, from, 0]
  let isWriting = true

  async function read(): Promise<void> {
    using client = openClient({ addresses: [address], caPem: network.caPem }, '/edge/client/v1')
    client.use(token)
    while (isWriting) {
      const [least, startedAt] = [acknowledged, performance.now()]
      const services = await client.request<{ name: string }[]>('GET', '/services?limit=100')
      lists++
      if (performance.now() - startedAt > WAIT_MS) continue
      const shown = services
        .map((service) => Number(service.name.slice(name.length)))
        .reduce((sum, bit) => sum + 2 ** bit, 0)
      const possible = Array.from({ length: started - least + 1 }, (_, more) => (least + more) % 2 ** BITS)
      if (!possible.includes(shown)) stale.push({ writer: name, shown, acknowledged: least, started })
    }
  }
  async function writeAll(): Promise<void> {
    for (let count = 0; count < WRITES; count++) {
      started++
      await write(bitsOf(started % 2 ** BITS))
      acknowledged = started
      const before = lists
      await expect.poll(() => lists, { interval: 1, timeout: 60_000 }).toBeGreaterThan(before + 1)
    }
    isWriting = false
  }
  await Promise.all([writeAll(), ...Array.from({ length: READERS }, read)])
  return stale
}

test('a list contains what was acknowledged before through the same process, with and without the bus', async () => {
  const writers: Writer[] = []
  for (const [at, address] of network.gateways.entries()) {
    const admin = await network.admin(address)
    writers.push(await policyWriter(admin, address, `policy${at}`))
    writers.push(await identityWriter(admin, address, `identity${at}`))
  }
  const states = { up: () => undefined, stopped: () => network.bus.stop(), back: () => network.bus.start() }
  let from = 0
  for (const turn of Object.values(states)) {
    await turn()
    const stale = await Promise.all(writers.map((writer) => hammer(writer, from)))
    expect(stale.flat()).toEqual([])
    from += WRITES
  }
}, 600_000)

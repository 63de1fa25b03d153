import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import type { Admin } from '../admin.js'
import { type Client, openClient } from '../client.js'
import { type Network, startNetwork } from '../network.js'

const password = 'correct horse'
const owner = '127.0.0.1'
const attacker = '127.0.0.2'

let network: Network
let admin: Admin
beforeAll(async () => {
  vi.stubEnv('OVERLAY_PASSWORD_WAITING', '8') // limits the size of the flood
  network = await startNetwork({ gateways: 2 })
  admin = await network.admin(network.gateways[0] ?? '')
})
afterAll(async () => {
  vi.unstubAllEnvs()
  await network[Symbol.asyncDispose]()
})

let count = 0
const newName = (): string => `name-${count++}`

const clientAt = (gateway: number, localAddress: string): Client =>
  openClient(
    { addresses: [network.gateways.at(gateway) ?? ''], caPem: network.caPem },
    '/edge/management/v1',
    { localAddress },
  )
const logIn = (client: Client, username: string, secret = password) =>
  client.call('POST', '/authenticate?method=password', { username, password: secret })

async function person(more: object = {}) {
  const username = newName()
  const id = await admin.create('identities', { name: username, type: 'Default', isAdmin: false, ...more })
  const proof = { method: 'updb', identityId: id, username, password }
  return { id, username, authenticatorId: await admin.create('authenticators', proof) }
}

/** Wrong logins from one address, many at a time, while `work` runs. */
async function flooding<T>(nameOf: () => string, work: () => Promise<T>): Promise<T> {
  let isOver = false
  const one = async (): Promise<void> => {
    using client = clientAt(0, attacker)
    while (!isOver) await logIn(client, nameOf(), 'wrong-one')
  }
  const all = Array.from({ length: 30 }, one)
  try {
    return await work()
  } finally {
    isOver = true
    await Promise.all(all)
  }
}

test.each([
  ['one name', () => 'nobody-has-it'],
  ['ever new names', newName],
])('a flood of wrong passwords for %s refuses no login from another address', async (_what, nameOf) => {
  using client = clientAt(0, owner)
  const statuses = await flooding(nameOf, async () => {
    const all: number[] = []
    for (let i = 0; i < 10; i++) all.push((await logIn(client, 'admin')).status)
    return all
  })
  expect(statuses).toEqual(Array(10).fill(200))
})

test('a flood of wrong passwords for one name refuses no other name at the same address', async () => {
  const { username } = await person()
  using client = clientAt(0, attacker)
  const statuses = await flooding(
    () => 'nobody-has-it-either',
    async () => [(await logIn(client, username)).status, (await logIn(client, username)).status],
  )
  expect(statuses).toEqual([200, 200])
})

test('a flood of wrong passwords for new names refuses no name that has logged in from the same address', async () => {
  const { username } = await person()
  using client = clientAt(0, attacker)
  expect((await logIn(client, username)).status).toBe(200)
  const statuses = await flooding(newName, async () => [
    (await logIn(client, username)).status,
    (await logIn(client, username)).status,
  ])
  expect(statuses).toEqual([200, 200])
})

test('guesses of a password are stopped at every gateway, and logins of its owner are not', async () => {
  for (const username of [(await person()).username, 'admin']) {
    using guesser = clientAt(0, attacker)
    const guesses: number[] = []
    while (guesses.length < 50 && !guesses.includes(429))
      guesses.push((await logIn(guesser, username, 'wrong-one')).status)
    expect(guesses.slice(0, 10)).toEqual(Array(10).fill(401))
    expect(guesses.at(-1)).toBe(429)
    for (const gateway of [0, 1]) {
      using client = clientAt(gateway, owner)
      expect((await logIn(client, username)).status).toBe(200)
    }
  }
})

test('a policy that locks after one failure cannot lock out the default admin', async () => {
  const updb = { maxAttempts: 1, lockoutDurationMinutes: 0 }
  await admin.request('PATCH', '/auth-policies/default', { primary: { updb } })
  using guesser = clientAt(0, '127.0.0.3')
  expect((await logIn(guesser, 'admin', 'wrong-one')).status).toBe(401)
  using client = clientAt(1, owner)
  expect((await logIn(client, 'admin')).status).toBe(200)
  expect(await admin.request('GET', '/current-identity')).toMatchObject({ disabled: false })
  await admin.request('PATCH', '/auth-policies/default', { primary: { updb: { maxAttempts: 0 } } })
})

test('a changed password ends the sessions of the old one at every gateway', async () => {
  const { username, authenticatorId } = await person()
  const clients = [clientAt(0, owner), clientAt(1, owner)]
  for (const client of clients) {
    client.use(((await logIn(client, username)).body.data as { token: string }).token)
    await client.request('GET', '/current-identity')
  }
  await admin.request('PATCH', `/authenticators/${authenticatorId}`, { password: 'another horse' })
  for (const client of clients) {
    while ((await client.call('GET', '/current-identity')).status !== 401);
    client[Symbol.dispose]()
  }
})

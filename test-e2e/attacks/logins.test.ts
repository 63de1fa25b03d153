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

/** Wrong logins, many at a time, while `work` runs. */
async function flooding<T>(
  nameOf: () => string,
  work: () => Promise<T>,
  sources: readonly string[] = Array<string>(30).fill(attacker),
): Promise<T> {
  let isOver = false
  const one = async (source: string): Promise<void> => {
    using client = clientAt(0, source)
    while (!isOver) await logIn(client, nameOf(), 'wrong-one')
  }
  const all = sources.map(one)
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

const fifty = Array.from({ length: 50 }, (_, i) => `127.0.9.${i + 1}`)

test('a flood from fifty addresses refuses no login from where its name has logged in, nor by certificate', async () => {
  const member = await admin.enroll({ name: newName() })
  using client = clientAt(0, owner)
  await logIn(client, 'admin')
  const statuses = await flooding(
    newName,
    async () => {
      const all: number[] = []
      for (let i = 0; i < 10; i++) {
        all.push((await logIn(client, 'admin')).status)
        all.push((await member.call('POST', '/authenticate?method=cert', {})).status)
        all.push((await admin.call('GET', '/current-identity')).status)
      }
      return all
    },
    fifty,
  )
  expect(statuses).toEqual(Array(30).fill(200))
})

test('guesses of one password from fifty addresses end at the limit of the account, and its owner logs in', async () => {
  const { id, username } = await person()
  using ownClient = clientAt(1, owner)
  expect((await logIn(ownClient, username)).status).toBe(200)
  const guess = async (source: string, i: number): Promise<number> => {
    using client = clientAt(i % 2, source)
    let guesses = 0
    while (guesses < 10 && (await logIn(client, username, 'wrong-one')).status === 401) guesses++
    return guesses
  }
  const guesses: number[] = []
  for (const [i, source] of fifty.entries()) {
    guesses.push(await guess(source, i))
    if (guesses.at(-1) === 0) break
  }
  // the others at once, as each refusal takes a second
  const others = [...fifty.entries()].slice(guesses.length)
  guesses.push(...(await Promise.all(others.map(([i, source]) => guess(source, i)))))
  expect(guesses.length).toBe(fifty.length)
  expect(guesses.reduce((sum, count) => sum + count, 0)).toBeLessThanOrEqual(105) // and one a minute
  using stranger = clientAt(0, '127.0.8.1')
  expect(await logIn(stranger, username)).toMatchObject({ status: 429, retryAfter: expect.any(Number) })
  expect((await logIn(ownClient, username)).status).toBe(200)
  await admin.request('POST', `/identities/${id}/enable`, {})
  expect((await logIn(stranger, username)).status).toBe(200)
})

test('codes of a second factor are guessed ten times, at whichever gateway, and an admin ends the pause', async () => {
  const { id, username } = await person()
  const clients = [clientAt(0, attacker), clientAt(1, attacker)]
  for (const client of clients)
    client.use(((await logIn(client, username)).body.data as { token: string }).token)
  await clients[0]?.request('POST', '/current-identity/mfa', {})
  const guess = (i: number) => clients[i % 2]?.call('POST', '/current-identity/mfa/verify', { code: '000' })
  for (let i = 0; i < 10; i++)
    expect(await guess(i)).toMatchObject({ status: 400, body: { error: { code: 'MFA_INVALID_TOKEN' } } })
  for (const i of [0, 1]) {
    expect(await guess(i)).toMatchObject({
      status: 429,
      body: { error: { code: 'SERVER_TOO_MANY_REQUESTS' } },
    })
    expect((await guess(i))?.retryAfter).toBeGreaterThan(200)
  }
  await admin.request('POST', `/identities/${id}/enable`, {})
  expect((await guess(0))?.status).toBe(400)
  for (const client of clients) client[Symbol.dispose]()
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

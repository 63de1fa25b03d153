import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import type { Admin } from '../admin.js'
import { type Answer, type Client, openClient } from '../client.js'
import { type Network, startNetwork } from '../network.js'

let network: Network
let admin: Admin
beforeAll(async () => {
  vi.stubEnv('OVERLAY_MAX_REQUESTS_PER_SESSION', '20')
  network = await startNetwork()
  admin = await network.admin()
})
afterAll(async () => {
  vi.unstubAllEnvs()
  await network[Symbol.asyncDispose]()
})

const clientAt = (localAddress: string): Client =>
  openClient({ addresses: [network.address], caPem: network.caPem }, '/edge/client/v1', { localAddress })

/** An identity with a password, logged in from this address. */
async function memberAt(localAddress: string) {
  const username = `member-${localAddress}`
  const identityId = await admin.create('identities', { name: username, type: 'Default', isAdmin: false })
  await admin.create('authenticators', { method: 'updb', identityId, username, password: 'correct horse' })
  const client = clientAt(localAddress)
  const logIn = () =>
    client.call('POST', '/authenticate?method=password', { username, password: 'correct horse' })
  const { token } = (await logIn()).body.data as { token: string }
  return {
    logIn,
    read: () => client.call('GET', '/current-identity', undefined, { 'zt-session': token }),
    [Symbol.dispose]: () => client[Symbol.dispose](),
  }
}

test('a session that floods the gateway is slowed down and refused; others read and log in as before', async () => {
  using flood = await memberAt('127.0.0.31')
  using other = await memberAt('127.0.0.32')
  let isOver = false
  const flooded: Answer[] = []
  const one = async (): Promise<void> => {
    while (!isOver) flooded.push(await flood.read())
  }
  const all = Array.from({ length: 300 }, one)
  const answers: Answer[] = []
  for (let i = 0; i < 10; i++) answers.push(await other.read(), await other.logIn())
  isOver = true
  await Promise.all(all)

  expect(answers.map(({ status }) => status)).toEqual(Array(20).fill(200))
  const refused = flooded.filter(({ status }) => status !== 200)
  expect(refused.length).toBeGreaterThan(0)
  for (const { status, retryAfter } of refused) {
    expect(status).toBe(429)
    expect(retryAfter).toBeGreaterThan(3)
  }
})

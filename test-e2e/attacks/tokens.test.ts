import { afterAll, beforeAll, expect, test } from 'vitest'
import { accessTokens } from '../access-tokens.js'
import type { Admin } from '../admin.js'
import { type Client, openClient } from '../client.js'
import { type Network, startNetwork } from '../network.js'

const password = 'correct horse'

let network: Network
let admin: Admin
/** Of each gateway. */
let clients: readonly Client[]
beforeAll(async () => {
  network = await startNetwork({ gateways: 2 })
  admin = await network.admin()
  const { caPem, gateways } = network
  clients = gateways.map((address) => openClient({ addresses: [address], caPem }, '/edge/client/v1'))
})
afterAll(async () => {
  for (const client of clients) client[Symbol.dispose]()
  await network[Symbol.asyncDispose]()
})

let count = 0
async function logIn() {
  const username = `user-${count++}`
  const identityId = await admin.create('identities', { name: username, type: 'Default', isAdmin: false })
  await admin.create('authenticators', { method: 'updb', identityId, username, password })
  return accessTokens(network.gateways, network.caPem, { username, password })
}

/** What all gateways answer. */
const statuses = (headers: Record<string, string>): Promise<number[]> =>
  Promise.all(
    clients.map(async (client) => (await client.call('GET', '/current-identity', undefined, headers)).status),
  )
const bearer = (token: string) => ({ authorization: `Bearer ${token}` })

test('a code that is presented again ends the session of its tokens at every gateway', async () => {
  const { access, refresh, redemption, post } = await logIn()
  expect(await statuses(bearer(access))).toEqual([200, 200])
  expect(await post({ ...redemption, code_verifier: 'x'.repeat(43) })).toMatchObject({
    error: 'invalid_grant',
  })
  expect(await statuses(bearer(access))).toEqual([200, 200])
  expect(await post(redemption)).toMatchObject({ error: 'invalid_grant' })
  await expect.poll(() => statuses(bearer(access))).toEqual([401, 401])
  const renewal = { grant_type: 'refresh_token', client_id: 'native', refresh_token: refresh }
  expect(await post(renewal)).toMatchObject({ error: 'invalid_grant' })
})

test('who has an access token alone gets no other token for it', async () => {
  const { access, post } = await logIn()
  const urn = 'urn:ietf:params:oauth:token-type:'
  for (const type of ['access_token', 'refresh_token', 'id_token']) {
    const exchange = {
      grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
      client_id: 'native',
      subject_token: access,
      subject_token_type: `${urn}access_token`,
      requested_token_type: urn + type,
    }
    expect(Object.keys(await post(exchange))).not.toContain('access_token')
  }
})

test('an access token in the header of session tokens is refused, also after a request has shown it', async () => {
  const { access } = await logIn()
  expect(await statuses(bearer(access))).toEqual([200, 200])
  for (const token of [access, `Bearer ${access}`])
    expect(await statuses({ 'zt-session': token })).toEqual([401, 401])
})

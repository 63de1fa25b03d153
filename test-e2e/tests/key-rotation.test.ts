import type { KeyRole } from '@overlay/pki/keys'
import { expect, test } from 'vitest'
import { accessTokens } from '../access-tokens.js'
import type { Server } from '../client.js'
import { type Load, startLoad } from '../load.js'
import { openRotation, type Rotation } from '../rotation.js'
import {
  authoritiesAt,
  bundleReader,
  certificateClient,
  enrollingClient,
  extendingRouter,
  invite,
  isVerifiedAt,
  keptConnection,
  keptRouter,
  openIdClient,
  passwordClient,
  redeem,
  refreshingClient,
  verifiedJwtOf,
} from '../rotation-clients.js'
import { enrollRouter } from '../router/identity.js'
import { startTraffic, type Traffic } from '../traffic.js'

const ENROLLING = 2
const IDLE = 3
const user = { username: 'user', password: 'correct horse' }

interface Counts {
  /** JWTs that a gateway did not verify. */
  unverified: number
}

/** Clients that enroll now. */
async function addClients(
  { network, admin }: Traffic,
  load: Load,
  name: string,
  hasRouter: boolean,
): Promise<void> {
  const { gateways, controllers, caPem } = network
  const [first = ''] = gateways
  const server: Server = { addresses: gateways, caPem: await authoritiesAt(first, caPem) }
  const member = await redeem(first, server.caPem, await invite(admin, name))
  load.add(`${name}: certificate`, certificateClient(gateways, member))
  if (!hasRouter) return
  const router = await enrollRouter(admin, server, { name })
  load.add(`${name}: router`, extendingRouter(router, controllers))
}

/** Clients that are there from the beginning to the end. */
async function startClients(traffic: Traffic, load: Load, counts: Counts): Promise<void> {
  const { network, admin } = traffic
  const { gateways, caPem } = network
  const server: Server = { addresses: gateways, caPem }
  const identityId = await admin.create('identities', { name: 'user', type: 'Default', isAdmin: false })
  await admin.create('authenticators', { method: 'updb', identityId, ...user })
  for (const address of gateways)
    load.add(`kept connection to ${address}`, await keptConnection({ addresses: [address], caPem }, user))
  load.add('kept control channels', keptRouter(await traffic.router('kept')))
  load.add('login by password', passwordClient(server, user))
  load.add('refresh of access tokens', refreshingClient(server, await accessTokens(gateways, caPem, user)))
  load.add('login by OpenID Connect', openIdClient(server, user))
  load.add('authorities', bundleReader(server))
  for (let i = 0; i < ENROLLING; i++) {
    const client = enrollingClient(admin, server, `enrolling ${i}`, () => counts.unverified++)
    load.add(`enrollment ${i}`, client)
  }
  await addClients(traffic, load, 'before', true)
}

test('every key is replaced while clients of every kind and age work, and no request fails', async () => {
  await using traffic = await startTraffic({ gateways: 2, identities: 2, pkis: 2, sessions: 2 })
  const { network, admin } = traffic
  const counts: Counts = { unverified: 0 }
  await using rotation = await openRotation(network)
  await using load = startLoad()
  await startClients(traffic, load, counts)
  await load.round()

  const step = async (name: string, work: (rotation: Rotation) => Promise<unknown>): Promise<void> => {
    await work(rotation)
    await addClients(traffic, load, `after ${name}`, name.includes('root'))
    await load.round()
  }
  const replace = async (role: KeyRole): Promise<void> => {
    await rotation.prepare(role)
    await load.round()
    await step(`another ${role} key`, () => rotation.activate(role))
    if (role !== 'server') await expect(rotation.retire(role)).rejects.toThrow('are valid until') // what clients have depends on it
  }
  await replace('token')
  await replace('signing')
  await step('a renewal of the server certificate', () => rotation.renewServer('other.example'))
  await replace('root')
  expect(counts.unverified).toBe(0)

  const idle = await Promise.all(Array.from({ length: IDLE }, (_, i) => invite(admin, `idle ${i}`)))
  await rotation.prepare('server')
  await load.round()
  const { unverifiableTokens } = await rotation.activate('server')
  const everywhere = (jwt: string) =>
    Promise.all(network.gateways.map((address) => isVerifiedAt(address, jwt)))
  for (const { jwt } of idle) expect(await everywhere(jwt)).toEqual([false, false])
  const again = await Promise.all(
    idle.map(async ({ id }) => ({ id, jwt: await verifiedJwtOf(admin, id, network.gateways) })),
  )
  await Promise.all(again.map((one) => redeem(network.gateways[0] ?? '', network.caPem, one)))
  await step('another server key', () => rotation.retire('server'))
  expect(unverifiableTokens).toBeGreaterThanOrEqual(IDLE)
  expect(unverifiableTokens).toBeLessThanOrEqual(IDLE + ENROLLING)
})

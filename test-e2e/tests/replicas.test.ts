import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Admin } from '../admin.js'
import { openClient } from '../client.js'
import { type Network, startNetwork } from '../network.js'

let network: Network
/** At the gateway of each process. */
let admins: readonly Admin[]
beforeAll(async () => {
  network = await startNetwork({ replicas: 2 })
  admins = await Promise.all(network.gateways.map((address) => network.admin(address)))
})
afterAll(() => network[Symbol.asyncDispose]())

test('two processes have all components each, and share the addresses of clients and routers', () => {
  expect([...network.processes.keys()].sort()).toEqual(['overlay-1', 'overlay-2'])
  expect(network.gateways).toHaveLength(2)
  expect(network.controllers).toHaveLength(2)
})

test('what one process acknowledges, the other one has', async () => {
  const [one, other] = admins as [Admin, Admin]
  const id = await one.create('services', { name: 'wiki', encryptionRequired: true })
  for (const name of ['first', 'second', 'third']) {
    await one.request('PATCH', `/services/${id}`, { name })
    expect(await other.request('GET', `/services/${id}`)).toMatchObject({ name })
    const attribute = `of-${name}`
    const { id: adminId } = await one.request<{ id: string }>('GET', '/current-identity')
    const policy = await one.create('service-policies', {
      name,
      type: 'Dial',
      semantic: 'AnyOf',
      identityRoles: [`#${attribute}`],
      serviceRoles: [`@${id}`],
    })
    await one.request('PATCH', `/identities/${adminId}`, { roleAttributes: [attribute] })
    expect(await other.request('GET', `/services/${id}`)).toMatchObject({ permissions: ['Dial'] })
    await one.request('DELETE', `/service-policies/${policy}`)
    expect(await other.request('GET', `/services/${id}`)).toMatchObject({ permissions: ['Invalid'] })
  }
})

test('the status of either process has all components of both', async () => {
  const services = ['all components', 'identity', 'pki', 'policy', 'sessions']
  for (const address of network.gateways) {
    using client = openClient({ addresses: [address], caPem: network.caPem }, '')
    using login = openClient({ addresses: [address], caPem: network.caPem }, '/edge/management/v1')
    const credentials = { username: 'admin', password: 'correct horse' }
    client.use(
      (await login.request<{ token: string }>('POST', '/authenticate?method=password', credentials)).token,
    )
    const { replicas, attention } = await client.request<{
      replicas: { service: string; answers: boolean; process: string }[]
      attention: object[]
    }>('GET', '/status')
    expect(replicas.map(({ service }) => service).sort()).toEqual([...services, ...services].sort())
    expect(replicas.every(({ answers }) => answers)).toBe(true)
    expect(new Set(replicas.map(({ process }) => process)).size).toBe(2)
    expect(attention).toEqual([])
  }
})

test('while one process is away or starts, new connections are served', async () => {
  const killed = network.processes.get('overlay-1')?.pid() ?? 0
  process.kill(killed, 'SIGKILL')
  const isBack = async (): Promise<boolean> => {
    using direct = (await network.admin(network.gateways[0] ?? '').catch(() => undefined)) ?? null
    return (await direct?.call('GET', '/services'))?.status === 200
  }
  for (let login = 0, back = false; !back; login++) {
    using admin = await network.admin()
    await admin.create('services', { name: `meanwhile ${login}`, encryptionRequired: true })
    back = await isBack()
  }
  expect(network.processes.get('overlay-1')?.pid()).not.toBe(killed)
})

import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Admin } from '../admin.js'
import { type Network, startNetwork } from '../network.js'

let network: Network
let admins: readonly [Admin, Admin]
beforeAll(async () => {
  network = await startNetwork({ gateways: 2, policies: 2 })
  const [one = '', two = ''] = network.gateways
  admins = [await network.admin(one), await network.admin(two)]
})
afterAll(() => network[Symbol.asyncDispose]())

const ROUNDS = 15
const host = { protocol: 'tcp', address: 'localhost', port: 80 }

interface Names {
  readonly kind: string
  readonly body: object
  readonly policies: string
  /** The members of a policy that names it. */
  policy(role: string): object
}

const servicePolicy = { type: 'Dial', semantic: 'AnyOf', identityRoles: ['#n'], serviceRoles: ['#n'] }
const named: readonly Names[] = [
  {
    kind: 'services',
    body: { encryptionRequired: true },
    policies: 'service-policies',
    policy: (role) => ({ ...servicePolicy, serviceRoles: [role] }),
  },
  {
    kind: 'posture-checks',
    body: { typeId: 'DOMAIN', domains: ['example.org'] },
    policies: 'service-policies',
    policy: (role) => ({ ...servicePolicy, postureCheckRoles: [role] }),
  },
  {
    kind: 'identities',
    body: { type: 'Device', isAdmin: false },
    policies: 'service-policies',
    policy: (role) => ({ ...servicePolicy, identityRoles: [role] }),
  },
  {
    kind: 'edge-routers',
    body: {},
    policies: 'edge-router-policies',
    policy: (role) => ({ semantic: 'AnyOf', identityRoles: ['#n'], edgeRouterRoles: [role] }),
  },
]

test.each(named)('no policy names $kind that are deleted during its write', async (names) => {
  const [one, two] = admins
  const { kind, body, policies, policy } = names
  for (let i = 0; i < ROUNDS; i++) {
    const name = `${kind}-${i}`
    const id = await one.create(kind, { name, ...body })
    const role = `@${id}`
    const [created, gone] = await Promise.all([
      one.call('POST', `/${policies}`, { name, ...policy(role) }),
      two.call('DELETE', `/${kind}/${id}`),
    ])
    expect(gone.status).toBe(200)
    if (created.status === 400) continue
    expect(created.status).toBe(201)
    const { id: policyId } = created.body.data as { id: string }
    const policyText = async () => JSON.stringify(await one.request('GET', `/${policies}/${policyId}`))
    await expect.poll(policyText).not.toContain(`"${role}"`)
  }
})

test('deletions of configs during writes of services that name them cause no server error', async () => {
  const [one, two] = admins
  const services = []
  for (let i = 0; i < 3; i++)
    services.push(await one.create('services', { name: `s-${i}`, encryptionRequired: true }))
  for (let i = 0; i < ROUNDS; i++) {
    const config = await one.create('configs', { name: `c-${i}`, configTypeId: 'NH5p4FpGR', data: host })
    for (const id of services) await one.request('PATCH', `/services/${id}`, { configs: [config] })
    const answers = await Promise.all([
      ...services.map((id, at) =>
        (at % 2 ? two : one).call('PATCH', `/services/${id}`, { configs: [config] }),
      ),
      two.call('DELETE', `/configs/${config}`),
    ])
    for (const { status } of answers) expect([200, 404]).toContain(status)
    for (const id of services)
      expect(await one.request('GET', `/services/${id}`)).toMatchObject({ configs: null })
  }
})

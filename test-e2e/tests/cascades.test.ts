import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Admin } from '../admin.js'
import { newAuthority } from '../authority.js'
import { openClient, type Server } from '../client.js'
import { keyAndRequest } from '../member.js'
import { type Network, startNetwork } from '../network.js'
import { samples } from './samples.js'

// Changes whose effects are in other services: what the answer of the change promises, another gateway shows at once.

type Row = Readonly<Record<string, unknown>>
const password = 'correct horse'

let network: Network
let writer: Admin
let reader: Admin
let count = 0

beforeAll(async () => {
  network = await startNetwork({ gateways: 2 })
  const [one = '', two = ''] = network.gateways
  writer = await network.admin(one)
  reader = await network.admin(two)
})
afterAll(() => network?.[Symbol.asyncDispose]())

const newName = (): string => `cascade-${count++}`
const get = (path: string) => reader.request<Row>('GET', path)
const list = (path: string) => reader.request<Row[]>('GET', path)
const statusOf = async (path: string) => (await reader.call('GET', path)).status
const create = async (kind: string, more: object = {}): Promise<string> =>
  writer.create(kind, { ...(await samples[kind]?.(writer, newName())), ...more })
const remove = (path: string) => writer.request('DELETE', path)
const patch = (path: string, body: object) => writer.request('PATCH', path, body)
const filtered = (kind: string, text: string) => list(`/${kind}?filter=${encodeURIComponent(text)}`)

/** An identity that may dial a service through a router, its session, and how it logged in. */
async function createScene() {
  const role = newName()
  const serviceId = await create('services', { roleAttributes: [role] })
  const routerId = await create('edge-routers', { isTunnelerEnabled: true })
  const terminatorId = await create('terminators', { service: serviceId, router: routerId })
  const configId = await create('configs')
  const identityId = await create('identities', {
    name: role,
    roleAttributes: [role],
    enrollment: { ott: true },
    serviceHostingCosts: { [serviceId]: 7 },
  })
  const credentials = { method: 'updb', identityId, username: role, password }
  const authenticatorId = await writer.create('authenticators', credentials)
  const policyId = await writer.create('service-policies', {
    ...{ name: role, type: 'Dial', semantic: 'AnyOf' },
    ...{ identityRoles: [`@${identityId}`], serviceRoles: [`@${serviceId}`] },
  })
  const routers = { semantic: 'AnyOf', edgeRouterRoles: ['#all'] }
  const ofIdentity = { ...routers, name: role, identityRoles: [`@${identityId}`] }
  const ofService = { ...routers, name: role, serviceRoles: [`@${serviceId}`] }
  const policyIds = [
    `/edge-router-policies/${await writer.create('edge-router-policies', ofIdentity)}`,
    `/service-edge-router-policies/${await writer.create('service-edge-router-policies', ofService)}`,
  ]
  await writer.request('POST', `/identities/${identityId}/service-configs`, [{ serviceId, configId }])
  const server: Server = { addresses: [network.gateways[0] ?? ''], caPem: network.caPem }
  using client = openClient(server, '/edge/client/v1')
  const configTypeId = await create('config-types')
  const { id: apiSessionId, token } = await client.request<{ id: string; token: string }>(
    'POST',
    '/authenticate?method=password',
    { username: role, password, configTypes: [configTypeId] },
  )
  client.use(token)
  const session = await client.request<{ id: string }>('POST', '/sessions', { serviceId, type: 'Dial' })
  const { token: enrollment } = (await filtered('enrollments', `identity = "${identityId}"`))[0] ?? {}
  expect(enrollment).toBeDefined()
  return {
    ...{ serviceId, routerId, terminatorId, configId, identityId, authenticatorId, policyId },
    ...{ configTypeId, apiSessionId, sessionId: session.id, policyIds },
  }
}

type Scene = Awaited<ReturnType<typeof createScene>>
type Look = readonly [what: string, look: (scene: Scene) => Promise<unknown>, before: unknown, after: unknown]

const exists = (what: string, path: (scene: Scene) => string): Look => [
  what,
  (scene) => statusOf(path(scene)),
  200,
  404,
]
const sessionOf = exists('its sessions', ({ sessionId }) => `/sessions/${sessionId}`)
const apiSessionOf = exists('its API sessions', ({ apiSessionId }) => `/api-sessions/${apiSessionId}`)
const terminatorOf = exists('its terminators', ({ terminatorId }) => `/terminators/${terminatorId}`)
const sizeOf = async (path: string) => (await list(path)).length
const rolesOf = async (path: string, member: string) =>
  ((await get(path))[member] as string[] | null)?.length ?? 0

const cascades: readonly (readonly [
  change: string,
  apply: (scene: Scene) => Promise<unknown>,
  looks: readonly Look[],
])[] = [
  [
    'the delete of a service',
    ({ serviceId }) => remove(`/services/${serviceId}`),
    [
      terminatorOf,
      sessionOf,
      ['the list of its terminators', ({ serviceId }) => sizeOf(`/services/${serviceId}/terminators`), 1, 0],
      [
        'the terminators of its router',
        ({ serviceId }) => filteredSize('terminators', `service = "${serviceId}"`),
        1,
        0,
      ],
      [
        'its hosting costs',
        async ({ identityId }) =>
          Object.keys((await get(`/identities/${identityId}`)).serviceHostingCosts as object).length,
        1,
        0,
      ],
      [
        'its configs of identities',
        ({ identityId }) => sizeOf(`/identities/${identityId}/service-configs`),
        1,
        0,
      ],
      [
        'its place in policies',
        ({ policyId }) => rolesOf(`/service-policies/${policyId}`, 'serviceRoles'),
        1,
        0,
      ],
      [
        'its place in lists of identities',
        ({ identityId }) => sizeOf(`/identities/${identityId}/services`),
        1,
        0,
      ],
      [
        'its place in lists of routers',
        ({ routerId, serviceId }) => listed(`/edge-routers/${routerId}/services`, serviceId),
        true,
        false,
      ],
    ],
  ],
  [
    'the delete of an identity',
    ({ identityId }) => remove(`/identities/${identityId}`),
    [
      sessionOf,
      apiSessionOf,
      exists('its authenticators', ({ authenticatorId }) => `/authenticators/${authenticatorId}`),
      [
        'its enrollments',
        ({ identityId }) => filteredSize('enrollments', `identity = "${identityId}"`),
        1,
        0,
      ],
      [
        'its place in policies',
        ({ policyId }) => rolesOf(`/service-policies/${policyId}`, 'identityRoles'),
        1,
        0,
      ],
      [
        'its place in lists of services',
        ({ serviceId }) => sizeOf(`/services/${serviceId}/identities`),
        1,
        0,
      ],
      [
        'its place in lists of routers',
        ({ routerId, identityId }) => listed(`/edge-routers/${routerId}/identities`, identityId),
        true,
        false,
      ],
    ],
  ],
  [
    'the delete of a router',
    ({ routerId }) => remove(`/edge-routers/${routerId}`),
    [
      terminatorOf,
      exists('its identity', ({ routerId }) => `/identities/${routerId}`),
      exists('its own policy', ({ routerId }) => `/edge-router-policies/${routerId}`),
      ['its enrollment', ({ routerId }) => filteredSize('enrollments', `edgeRouter = "${routerId}"`), 1, 0],
      [
        'its place in lists of services',
        ({ serviceId, routerId }) => listed(`/services/${serviceId}/edge-routers`, routerId),
        true,
        false,
      ],
      [
        'its place in lists of identities',
        ({ identityId, routerId }) => listed(`/identities/${identityId}/edge-routers`, routerId),
        true,
        false,
      ],
    ],
  ],
  [
    'a router that tunnels no longer',
    ({ routerId }) => patch(`/edge-routers/${routerId}`, { isTunnelerEnabled: false }),
    [
      exists('its identity', ({ routerId }) => `/identities/${routerId}`),
      exists('its own policy', ({ routerId }) => `/edge-router-policies/${routerId}`),
    ],
  ],
  [
    'the new name of a router',
    ({ routerId }) => patch(`/edge-routers/${routerId}`, { name: `new ${routerId}` }),
    [
      [
        'the name of its identity',
        async ({ routerId }) => (await get(`/identities/${routerId}`)).name === `new ${routerId}`,
        false,
        true,
      ],
      [
        'the name at its enrollment',
        ({ routerId }) =>
          filteredName('enrollments', `edgeRouter = "${routerId}"`, 'edgeRouter', `new ${routerId}`),
        false,
        true,
      ],
      [
        'the name at its terminators',
        ({ terminatorId, routerId }) => named(`/terminators/${terminatorId}`, 'router', `new ${routerId}`),
        false,
        true,
      ],
    ],
  ],
  [
    'the new name of a service',
    ({ serviceId }) => patch(`/services/${serviceId}`, { name: `new ${serviceId}` }),
    [
      [
        'the name at its terminators',
        ({ terminatorId, serviceId }) => named(`/terminators/${terminatorId}`, 'service', `new ${serviceId}`),
        false,
        true,
      ],
      [
        'filters by it',
        ({ serviceId }) => filteredSize('terminators', `service.name = "new ${serviceId}"`),
        0,
        1,
      ],
      [
        'the name at its sessions',
        ({ sessionId, serviceId }) => named(`/sessions/${sessionId}`, 'service', `new ${serviceId}`),
        false,
        true,
      ],
    ],
  ],
  [
    'the delete of a config type',
    ({ configTypeId }) => remove(`/config-types/${configTypeId}`),
    [
      [
        'its place in API sessions',
        async ({ apiSessionId }) =>
          ((await get(`/api-sessions/${apiSessionId}`)).configTypes as string[]).length,
        1,
        0,
      ],
    ],
  ],
  [
    'the delete of an API session',
    ({ apiSessionId }) => remove(`/api-sessions/${apiSessionId}`),
    [apiSessionOf, sessionOf],
  ],
  [
    'the delete of an authenticator',
    ({ authenticatorId }) => remove(`/authenticators/${authenticatorId}`),
    [apiSessionOf, sessionOf],
  ],
  [
    'a new password',
    ({ authenticatorId }) => patch(`/authenticators/${authenticatorId}`, { password: 'another horse' }),
    [apiSessionOf, sessionOf],
  ],
  [
    'an identity that is disabled',
    ({ identityId }) => writer.request('POST', `/identities/${identityId}/disable`, { durationMinutes: 0 }),
    [apiSessionOf, sessionOf],
  ],
]

const filteredSize = async (kind: string, text: string) => (await filtered(kind, text)).length
const listed = async (path: string, id: string) =>
  (await list(`${path}?limit=500`)).some((row) => row.id === id)
const nameIn = (row: Row | undefined, member: string) =>
  (row?.[member] as { name?: string } | undefined)?.name
const named = async (path: string, member: string, name: string) => nameIn(await get(path), member) === name
const filteredName = async (kind: string, text: string, member: string, name: string) =>
  nameIn((await filtered(kind, text))[0], member) === name

describe.each(cascades)('%s', (_change, apply, looks) => {
  test(`is seen at once in ${looks.map(([what]) => what).join(', ')}`, async () => {
    const scene = await createScene()
    const seen = () => Promise.all(looks.map(async ([what, look]) => [what, await look(scene)]))
    expect(await seen()).toEqual(looks.map(([what, , before]) => [what, before]))
    await apply(scene)
    expect(await seen()).toEqual(looks.map(([what, , , after]) => [what, after]))
  })
})

test('the delete of an authority is seen at once in enrollments that need it', async () => {
  const name = newName()
  const authority = await newAuthority(name)
  const caId = await create('cas', { certPem: authority.cert })
  const { verificationToken } = await get(`/cas/${caId}`)
  await writer.request(
    'POST',
    `/cas/${caId}/verify`,
    (await authority.certify(String(verificationToken))).cert,
  )
  const identityId = await create('identities', { enrollment: { ottca: caId } })
  const enrollments = () => filteredSize('enrollments', `identity = "${identityId}"`)
  expect(await enrollments()).toBe(1)
  await remove(`/cas/${caId}`)
  expect(await enrollments()).toBe(0)
})

test('the new address of a signer is seen at once by sessions that must present its tokens', async () => {
  const signer = await create('external-jwt-signers', { externalAuthUrl: 'https://one.example' })
  const secondary = { requireTotp: false, requireExtJwtSigner: signer }
  const authPolicyId = await create('auth-policies', { secondary })
  const username = newName()
  const identityId = await create('identities', { authPolicyId })
  await writer.create('authenticators', { method: 'updb', identityId, username, password })
  const server: Server = { addresses: [network.gateways[1] ?? ''], caPem: network.caPem }
  using client = openClient(server, '/edge/client/v1')
  const { token } = await client.request<{ token: string }>('POST', '/authenticate?method=password', {
    username,
    password,
  })
  client.use(token)
  const address = async () => {
    const { authQueries } = await client.request<{ authQueries: { httpUrl: string }[] }>(
      'GET',
      '/current-api-session',
    )
    return authQueries[0]?.httpUrl
  }
  expect(await address()).toBe('https://one.example')
  await patch(`/external-jwt-signers/${signer}`, { externalAuthUrl: 'https://two.example' })
  await expect.poll(address).toBe('https://two.example')
})

describe('a router whose name an identity has', () => {
  const refused = { status: 400, body: { error: { code: 'COULD_NOT_VALIDATE', cause: { field: 'name' } } } }
  const nothingOf = async (name: string) => [
    await filteredSize('edge-routers', `name = "${name}"`),
    await filteredSize('identities', `name contains "${name}"`),
  ]

  test('is not created as a tunneling router, and nothing of it is left', async () => {
    const name = newName()
    await create('identities', { name })
    const counts = async () => [
      await sizeOf('/enrollments?limit=500'),
      await sizeOf('/edge-router-policies?limit=500'),
    ]
    const before = await counts()
    expect(await writer.call('POST', '/edge-routers', { name, isTunnelerEnabled: true })).toMatchObject(
      refused,
    )
    expect([await nothingOf(name), await counts()]).toEqual([[0, 1], before])
  })

  test.each(['PUT', 'PATCH'])(
    'does not begin to tunnel by %s, and may if it gets another name',
    async (method) => {
      const name = newName()
      await create('identities', { name })
      const id = await create('edge-routers', { name })
      const path = `/edge-routers/${id}`
      expect(await writer.call(method, path, { name, isTunnelerEnabled: true })).toMatchObject(refused)
      expect(await get(path)).toMatchObject({ isTunnelerEnabled: false, name })
      expect(await statusOf(`/identities/${id}`)).toBe(404)
      await writer.request(method, path, { name: `${name}-b`, isTunnelerEnabled: true })
      expect(await get(`/identities/${id}`)).toMatchObject({ name: `${name}-b` })
      expect(await writer.call('PATCH', path, { name })).toMatchObject(refused)
      expect(await get(path)).toMatchObject({ name: `${name}-b` })
      expect(await get(`/identities/${id}`)).toMatchObject({ name: `${name}-b` })
    },
  )

  test('is one of two that are created at the same time', async () => {
    for (let round = 0; round < 5; round++) {
      const name = newName()
      const [identity, router] = await Promise.all([
        reader.call('POST', '/identities', { name, type: 'Device', isAdmin: false }),
        writer.call('POST', '/edge-routers', { name, isTunnelerEnabled: true }),
      ])
      expect([identity.status, router.status].sort()).toEqual([201, 400])
      expect(await nothingOf(name)).toEqual([router.status === 201 ? 1 : 0, 1])
    }
  })
})

test('a router is verified, or not, through each of its paths and in filters', async () => {
  const { identityId, serviceId, routerId, policyIds } = await createScene()
  const lists = [
    ...['/edge-routers', '/transit-routers', '/routers'],
    ...[`/identities/${identityId}/edge-routers`, `/services/${serviceId}/edge-routers`],
    ...policyIds.map((path) => `${path}/edge-routers`),
  ]
  const verified = async () => [
    ...(await Promise.all(
      lists.map(async (path) => {
        const rows = await list(`${path}?limit=500`)
        return [path, rows.filter(({ id }) => id === routerId).map(({ isVerified }) => isVerified)]
      }),
    )),
    ...(await Promise.all(
      lists.slice(0, 3).map(async (path) => [path, [(await get(`${path}/${routerId}`)).isVerified]]),
    )),
    ['filter', [(await filtered('edge-routers', 'isVerified = true')).some(({ id }) => id === routerId)]],
  ]
  const everywhere = (isVerified: boolean) =>
    [...lists, ...lists.slice(0, 3), 'filter'].map((path) => [path, [isVerified]])
  expect(await verified()).toEqual(everywhere(false))
  await enrollRouter(routerId)
  expect(await verified()).toEqual(everywhere(true))
  await writer.request('POST', `/edge-routers/${routerId}/re-enroll`)
  expect(await verified()).toEqual(everywhere(false))
})

async function enrollRouter(routerId: string): Promise<void> {
  const { enrollmentToken } = await get(`/edge-routers/${routerId}`)
  const [client, server] = [await keyAndRequest(routerId), await keyAndRequest(routerId)]
  using anonymous = openClient(
    { addresses: [network.gateways[0] ?? ''], caPem: network.caPem },
    '/edge/client/v1',
  )
  await anonymous.request('POST', `/enroll?method=erott&token=${enrollmentToken}`, {
    certCsr: client.csr,
    serverCertCsr: server.csr,
  })
}

import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Access } from '../../gateway/src/http/exchange.js'
import type { Admin } from '../admin.js'
import { type Certificate, type Client, openClient, type Server } from '../client.js'
import { ownCertificate } from '../member.js'
import { type Network, startNetwork } from '../network.js'
import { operations } from '../published.js'
import { samples } from './samples.js'

const bases = {
  client: '/edge/client/v1',
  management: '/edge/management/v1',
  fabric: '/fabric/v1',
  audit: '/audit/v1',
} as const

type Api = keyof typeof bases

/** All operations with their level. The logout comes last. */
const levelsOf = (requestedApi: Api) =>
  operations
    .filter(({ api }) => api === requestedApi)
    .map(({ method, path, access }) => [`${method} ${path}`, access] as const)
    .sort(([a], [b]) => Number(a === LOGOUT) - Number(b === LOGOUT))

const LOGOUT = 'DELETE /current-api-session'

const credentials = { username: 'partial', password: 'correct horse' }
const inAnHour = () => ({ expiresAt: new Date(Date.now() + 3_600_000).toISOString() })

/** Valid bodies of operations that are not the uniform ones of a kind. */
const bodies: Readonly<Record<string, () => unknown>> = {
  'POST /authenticate': () => ({}),
  'POST /enroll': () => 'no request',
  'POST /cas/{id}/verify': () => 'no certificate',
  'POST /enroll/ca': () => ({}),
  'POST /enroll/challenge': () => ({ keyId: 'nothing', nonce: '00000000-0000-4000-8000-000000000000' }),
  'POST /enroll/erott': () => ({}),
  'POST /enroll/extend/router': () => ({}), // a valid one needs the certificate of a router
  'POST /enroll/ott': () => ({}),
  'POST /enroll/ottca': () => ({}),
  'POST /enroll/trott': () => ({}),
  'POST /enroll/updb': () => ({}),
  'POST /routers': () => ({ name: `router-${count++}` }),
  'PUT /routers/{id}': () => ({ name: `router-${count++}` }),
  'POST /sessions': () => ({ serviceId: 'nothing', type: 'Dial' }),
  'POST /current-api-session/certificates': () => ({ csr: 'no request' }),
  'POST /current-identity/authenticators/{id}/extend': () => ({ clientCertCsr: 'no request' }),
  'POST /current-identity/authenticators/{id}/extend-verify': () => ({ clientCert: 'no certificate' }),
  'PUT /current-identity/authenticators/{id}': () => ({ ...credentials, currentPassword: 'incorrect' }),
  'PATCH /current-identity/authenticators/{id}': () => ({ currentPassword: 'incorrect' }),
  'POST /identities/{id}/disable': () => ({ durationMinutes: 1 }),
  'POST /identities/{id}/enable': () => undefined,
  'POST /database/check-data-integrity': () => undefined,
  'POST /database/fix-data-integrity': () => undefined,
  'POST /database/snapshot': () => undefined,
  'POST /edge-routers/{id}/re-enroll': () => undefined,
  'POST /authenticators/{id}/re-enroll': inAnHour,
  'POST /enrollments/{id}/refresh': inAnHour,
  'PUT /identities/{id}/trace': () => ({ enabled: false }),
  'POST /posture-response': () => ({ id: 'nothing', typeId: 'DOMAIN', domain: 'a.example' }),
  'POST /posture-response-bulk': () => [],
  'PATCH /posture-checks/{id}': () => ({ typeId: 'DOMAIN', tags: { a: 'b' } }),
  'POST /authenticate/mfa': () => ({ code: '000000' }),
  'POST /current-api-session/totp-token': () => ({ code: '000000' }),
  'POST /current-identity/mfa': () => undefined,
  'POST /current-identity/mfa/recovery-codes': () => ({ code: '000000' }),
  'POST /current-identity/mfa/verify': () => ({ code: '000000' }),
  'POST /identities/{id}/service-configs': () => [{ serviceId: 'nothing', configId: 'nothing' }],
}

const fabricRouter = () => ({ name: `router-${count++}`, fingerprint: '', cost: 1, noTraversal: false })
const fabricTerminator = { service: 'nothing', router: 'nothing', binding: 'transport', address: 'tcp:a:1' }

/** The same for operations that take other bodies in the fabric API. */
const fabricBodies: typeof bodies = {
  'POST /database': () => undefined,
  'POST /database/snapshot': () => ({ path: '' }),
  'POST /inspections': () => ({ appRegex: '.*', requestedValues: ['connected-routers'] }),
  'PATCH /links/{id}': () => ({ down: true }),
  'POST /raft/add-member': () => ({ address: 'tls:localhost:1', isVoter: true }),
  'POST /raft/remove-member': () => ({ id: 'nothing' }),
  'POST /raft/transfer-leadership': () => ({ newLeaderId: '' }),
  'POST /routers': () => ({ id: `fabric-${count++}`, ...fabricRouter() }),
  'PUT /routers/{id}': fabricRouter,
  'POST /services': () => ({ name: `service-${count++}` }),
  'PUT /services/{id}': () => ({ name: `service-${count++}` }),
  'POST /terminators': () => fabricTerminator,
  'PUT /terminators/{id}': () => fabricTerminator,
}

let network: Network
let server: Server
let admin: Admin
let count = 0
/** Some operations require a client certificate. */
let certificate: Certificate

beforeAll(async () => {
  network = await startNetwork({ shared: true })
  server = { addresses: [network.address], caPem: network.caPem }
  admin = await network.admin()
  certificate = await ownCertificate()
  const policy = (await samples['auth-policies']?.(admin, 'two factors')) as object
  const authPolicyId = await admin.create('auth-policies', { ...policy, secondary: { requireTotp: true } })
  const identity = { name: 'partial', type: 'Device', isAdmin: true, authPolicyId }
  const identityId = await admin.create('identities', identity)
  await admin.create('authenticators', { method: 'updb', identityId, ...credentials })
})
afterAll(() => network[Symbol.asyncDispose]())

async function bodyOf(api: Api, operation: string): Promise<unknown> {
  const [method = '', path = ''] = operation.split(' ')
  if (method === 'GET' || method === 'DELETE') return undefined
  const special = (api === 'fabric' ? fabricBodies[operation] : undefined) ?? bodies[operation]
  if (special) return special()
  if (method === 'PATCH') return { tags: { a: 'b' } }
  const sample = samples[path.replace(/^\/|\/\{id\}$/g, '')]
  if (!sample) throw new Error(`no valid body for ${operation}`)
  return sample(admin, `permissions-${count++}`)
}

type Callers = Readonly<Record<string, { readonly admits: readonly Access[]; logIn(): Promise<string> }>>

const tokenOf = async (query: string, body: object): Promise<string> => {
  using caller = openClient(server, bases.client)
  return (await caller.request<{ token: string }>('POST', `/authenticate?${query}`, body)).token
}

const callers: Callers = {
  'who has no session': { admits: ['none'], logIn: async () => '' },
  'an admin whose second factor is due': {
    admits: ['none', 'partial'],
    logIn: () => tokenOf('method=password', credentials),
  },
  'who is no admin': {
    admits: ['none', 'partial', 'full'],
    async logIn() {
      const identityId = await admin.create('identities', {
        name: `m${count}`,
        type: 'Device',
        isAdmin: false,
      })
      const own = { username: `member-${count++}`, password: 'correct horse' }
      await admin.create('authenticators', { method: 'updb', identityId, ...own })
      return tokenOf('method=password', own)
    },
  },
  'an admin': {
    admits: ['none', 'partial', 'full', 'admin'],
    logIn: () => tokenOf('method=password', { username: 'admin', password: 'correct horse' }),
  },
}

/** The outcome of an operation for a caller; of an unexpected failure its status. */
async function outcomeOf(caller: Client, api: Api, operation: string): Promise<string> {
  const [method = '', path = ''] = operation.split(' ')
  const answer = await caller.call(method, path.replace(/\{\w+\}/g, 'nothing'), await bodyOf(api, operation))
  if (answer.status >= 500) return `${answer.status}`
  return answer.status === 401 && answer.body.error?.code === 'UNAUTHORIZED' ? 'refused' : 'admitted'
}

describe.each(['client', 'management', 'fabric', 'audit'] as const)('%s API', (api) => {
  describe.each(Object.entries(callers))('%s', (_, { admits, logIn }) => {
    let caller: Client
    beforeAll(async () => {
      caller = openClient(server, bases[api], certificate)
      caller.use(await logIn())
    })
    afterAll(() => caller[Symbol.dispose]())

    test.each(levelsOf(api))('gets from %s the outcome of its level, %s', async (operation, level) => {
      expect(await outcomeOf(caller, api, operation)).toBe(admits.includes(level) ? 'admitted' : 'refused')
    })
  })
})

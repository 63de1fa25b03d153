import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Access, client, management } from '../../gateway/src/api/operations.js'
import type { Admin } from '../admin.js'
import { type Certificate, type Client, openClient, type Server } from '../client.js'
import { ownCertificate } from '../member.js'
import { type Network, startNetwork } from '../network.js'
import { samples } from './samples.js'

const apis = {
  client: { base: '/edge/client/v1', operations: client },
  management: { base: '/edge/management/v1', operations: management },
} as const satisfies Record<string, { base: string; operations: Readonly<Record<string, Access>> }>

const credentials = { username: 'partial', password: 'correct horse' }
const inAnHour = () => ({ expiresAt: new Date(Date.now() + 3_600_000).toISOString() })

/** Bodies that pass, of what is not the uniform writing of a kind. */
const bodies: Readonly<Record<string, () => unknown>> = {
  'POST /authenticate': () => ({}),
  'POST /enroll': () => 'no request',
  'POST /routers': () => ({ name: `router-${made++}` }),
  'PUT /routers/{id}': () => ({ name: `router-${made++}` }),
  'POST /sessions': () => ({ serviceId: 'nothing', type: 'Dial' }),
  'POST /current-api-session/certificates': () => ({ csr: 'no request' }),
  'POST /current-identity/authenticators/{id}/extend': () => ({ clientCertCsr: 'no request' }),
  'POST /current-identity/authenticators/{id}/extend-verify': () => ({ clientCert: 'no certificate' }),
  'PUT /current-identity/authenticators/{id}': () => ({ ...credentials, currentPassword: 'incorrect' }),
  'PATCH /current-identity/authenticators/{id}': () => ({ currentPassword: 'incorrect' }),
  'POST /identities/{id}/disable': () => ({ durationMinutes: 1 }),
  'POST /identities/{id}/enable': () => undefined,
  'POST /edge-routers/{id}/re-enroll': () => undefined,
  'POST /authenticators/{id}/re-enroll': inAnHour,
  'POST /enrollments/{id}/refresh': inAnHour,
  'POST /identities/{id}/service-configs': () => [{ serviceId: 'nothing', configId: 'nothing' }],
}

let network: Network
let server: Server
let admin: Admin
let made = 0
/** Some operations are refused to those who show no certificate at all. */
let certificate: Certificate

beforeAll(async () => {
  network = await startNetwork()
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

async function bodyOf(operation: string): Promise<unknown> {
  const [method = '', path = ''] = operation.split(' ')
  if (method === 'GET' || method === 'DELETE') return undefined
  const special = bodies[operation]
  if (special) return special()
  if (method === 'PATCH') return { tags: { a: 'b' } }
  const sample = samples[path.replace(/^\/|\/\{id\}$/g, '')]
  if (!sample) throw new Error(`no body that passes is known of ${operation}`)
  return sample(admin, `permissions-${made++}`)
}

type Callers = Readonly<Record<string, { readonly admits: readonly Access[]; logIn(): Promise<string> }>>

const tokenOf = async (query: string, body: object): Promise<string> => {
  using caller = openClient(server, apis.client.base)
  return (await caller.ask<{ token: string }>('POST', `/authenticate?${query}`, body)).token
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
        name: `m${made}`,
        type: 'Device',
        isAdmin: false,
      })
      const own = { username: `member-${made++}`, password: 'correct horse' }
      await admin.create('authenticators', { method: 'updb', identityId, ...own })
      return tokenOf('method=password', own)
    },
  },
  'an admin': {
    admits: ['none', 'partial', 'full', 'admin'],
    logIn: () => tokenOf('method=password', { username: 'admin', password: 'correct horse' }),
  },
}

const LOGOUT = 'DELETE /current-api-session'

/** What a caller may do; an answer that says that something broke stands as its status. */
async function outcomeOf(caller: Client, operation: string): Promise<string> {
  const [method = '', path = ''] = operation.split(' ')
  const answer = await caller.call(method, path.replace(/\{\w+\}/g, 'nothing'), await bodyOf(operation))
  if (answer.status >= 500) return `${answer.status}`
  return answer.status === 401 && answer.body.error?.code === 'UNAUTHORIZED' ? 'refused' : 'admitted'
}

describe.each(Object.entries(apis))('%s API', (_api, { base, operations }) => {
  test.each(Object.entries(callers))('%s may do what the table says', async (_caller, { admits, logIn }) => {
    using caller = openClient(server, base, certificate)
    caller.use(await logIn())
    const levels = Object.entries<Access>(operations)
    const outcomes: Record<string, string> = {}
    for (const [operation] of levels.filter(([operation]) => operation !== LOGOUT))
      outcomes[operation] = await outcomeOf(caller, operation)
    outcomes[LOGOUT] = await outcomeOf(caller, LOGOUT)
    const expected = levels.map(([operation, level]) => [
      operation,
      admits.includes(level) ? 'admitted' : 'refused',
    ])
    expect(outcomes).toEqual(Object.fromEntries(expected))
  })
})

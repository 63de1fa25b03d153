import { readFileSync } from 'node:fs'
import { Agent, request } from 'node:https'
import { text } from 'node:stream/consumers'
import { pemBlocksIn } from '@overlay/x509'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { operations as oidcOperations } from '../../gateway/src/oidc/operations.js'
import { newAuthority } from '../authority.js'
import type { Certificate } from '../client.js'
import { excessiveChains, hostileChains } from '../hostile-chains.js'
import { type Network, startNetwork } from '../network.js'
import { operations } from '../published.js'

const client = '/edge/client/v1'
const bases = { client, management: '/edge/management/v1', fabric: '/fabric/v1', audit: '/audit/v1' }
const json = { 'content-type': 'application/json' }
const form = { 'content-type': 'application/x-www-form-urlencoded' }

let network: Network
beforeAll(async () => {
  network = await startNetwork({ replicas: 1 })
  // chains are compared with the authorities of third parties, too
  const admin = await network.admin()
  const authority = await newAuthority('third party')
  const flags = { isAuthEnabled: true, isAutoCaEnrollmentEnabled: true, isOttCaEnrollmentEnabled: true }
  const id = await admin.create('cas', { name: 'ca', certPem: authority.cert, identityRoles: [], ...flags })
  const { verificationToken } = await admin.request<{ verificationToken: string }>('GET', `/cas/${id}`)
  await admin.request('POST', `/cas/${id}/verify`, (await authority.certify(verificationToken)).cert)
})
afterAll(() => network[Symbol.asyncDispose]())

interface Request {
  readonly method: string
  readonly path: string
  readonly body?: string
  readonly headers?: Readonly<Record<string, string>>
}
interface Answer {
  readonly status: number
  readonly location: string
}

let sources = 0
/** A stranger at an address of its own: limits per source apply to nobody else. */
function openStranger(certificate?: Certificate) {
  sources++
  const localAddress = `127.0.${20 + (sources >> 7)}.${1 + (sources & 127)}`
  const agent = new Agent({
    keepAlive: true,
    maxSockets: 1,
    ca: network.caPem,
    servername: 'localhost',
    localAddress,
    ...certificate,
  })
  const [host, port] = network.address.split(':')
  return {
    send: ({ method, path, body = '', headers = {} }: Request) =>
      new Promise<Answer>((resolve, reject) => {
        const length = method === 'GET' ? {} : { 'content-length': Buffer.byteLength(body) }
        const options = {
          host,
          port,
          method,
          path,
          agent,
          headers: { accept: 'application/json', ...length, ...headers },
        }
        const outgoing = request(options, async (answer) => {
          await text(answer)
          resolve({ status: answer.statusCode ?? 0, location: answer.headers.location ?? '' })
        })
        outgoing.on('error', reject).end(body)
      }),
    [Symbol.dispose]: () => agent.destroy(),
  }
}

/** Of the thread with the event loop, which all requests share. Hashes of passwords have threads and a queue of their own. */
function cpuMs(): number {
  const [pid] = [...network.processes.values()].map((one) => one.pid())
  const [nanoseconds] = readFileSync(`/proc/${pid}/task/${pid}/schedstat`, 'utf8').split(' ')
  return Number(nanoseconds) / 1e6
}

const BATCHES = 4
const REQUESTS = 2 // all of them are within the limits of one source

/** CPU of one request, without what other work of the process has added to some of them. */
async function costOf(requestOf: () => Request | Promise<Request>, certificate?: Certificate) {
  using stranger = openStranger(certificate)
  const statuses = new Set([(await stranger.send(await requestOf())).status]) // with the handshake
  const costs: number[] = []
  for (let batch = 0; batch < BATCHES; batch++) {
    const requests = await Promise.all(Array.from({ length: REQUESTS }, requestOf))
    const before = cpuMs()
    for (const one of requests) statuses.add((await stranger.send(one)).status)
    costs.push((cpuMs() - before) / REQUESTS)
  }
  return { cost: Math.min(...costs), statuses: [...statuses] }
}

const post = (path: string, body: object, headers = {}): Request => ({
  method: 'POST',
  path,
  body: JSON.stringify(body),
  headers: { ...json, ...headers },
})

let names = 0
const garbage = `${'a'.repeat(5000)}.${'b'.repeat(5000)}.${'c'.repeat(5000)}`
const loginFailures: Readonly<Record<string, () => Request>> = {
  'a password of nobody': () =>
    post(`${client}/authenticate?method=password`, { username: `nobody-${names++}`, password: 'wrong-one' }),
  'no certificate': () => post(`${client}/authenticate?method=cert`, {}),
  'a token that is none': () =>
    post(`${client}/authenticate?method=ext-jwt`, {}, { authorization: `Bearer ${garbage}` }),
}

const challenge = {
  client_id: 'native',
  redirect_uri: 'http://localhost:8888/auth/callback',
  response_type: 'code',
  scope: 'openid',
  state: 's'.repeat(1000),
  nonce: 'n'.repeat(1000),
  code_challenge: 'x'.repeat(43),
  code_challenge_method: 'S256',
}
const authorize: Request = { method: 'GET', path: `/oidc/authorize?${new URLSearchParams(challenge)}` }

/** The id of a login that has begun. */
async function loginId(): Promise<string> {
  using stranger = openStranger()
  const { location } = await stranger.send(authorize)
  return new URL(location, `https://${network.address}`).searchParams.get('authRequestID') ?? ''
}

/** Every operation that needs no session, with what makes it work. */
function openOperations(): Readonly<Record<string, () => Request>> {
  const uuid = '00000000-0000-4000-8000-000000000000'
  const apis = operations
    .filter(({ access }) => access === 'none')
    .map(({ api, method, path }) => ({ method, path: bases[api] + path.replace('{id}', 'edge-client') }))
  const oidc = Object.keys(oidcOperations).map((operation) => {
    const [method = '', path = ''] = operation.split(' ')
    return { method, path }
  })
  const pages = [
    '/',
    '/status',
    '/status/api',
    '/health-checks',
    '/nothing',
    '/docs/management',
    '/docs/client',
  ]
  const all: Request[] = [
    ...apis.map(({ method, path }) =>
      method === 'GET' ? { method, path } : post(`${path}?token=${uuid}`, { username: 'x', password: 'y' }),
    ),
    ...oidc.map(({ method, path }) =>
      method === 'GET'
        ? { method, path: `${path}?${new URLSearchParams(challenge)}` }
        : {
            method,
            path,
            body: `id=${uuid}&username=x&password=y&token=z&${new URLSearchParams(challenge)}`,
            headers: form,
          },
    ),
    ...pages.map((path) => ({ method: 'GET', path, headers: { accept: 'text/html' } })),
    { method: 'POST', path: '/status/login', body: 'username=x&password=y', headers: form },
  ]
  return Object.fromEntries(all.map((one) => [`${one.method} ${one.path.split('?', 1)[0]}`, () => one]))
}

const encodedHost = encodeURIComponent(
  String.fromCharCode(...Array.from({ length: 7500 }, (_, i) => 0x4e00 + i)),
)

/** Headers of the greatest length that are read at many requests. */
const longHeaders: Readonly<Record<string, () => Request>> = {
  'a long Accept header': () => ({ method: 'GET', path: '/', headers: { accept: ','.repeat(70_000) } }),
  'a long preflight': () => ({
    method: 'OPTIONS',
    path: '/',
    headers: {
      origin: 'https://x.example',
      'access-control-request-method': 'GET',
      'access-control-request-headers': ','.repeat(70_000),
    },
  }),
  'a long host': () => ({ method: 'GET', path: '/', headers: { host: encodedHost } }),
  'a long host in the target': () => ({ method: 'GET', path: `https://${encodedHost}/` }),
  'a long cookie': () => ({ ...authorize, headers: { cookie: '; '.repeat(35_000) } }),
}

/** Operations that build the chain of the client. */
const chainOperations: Readonly<Record<string, () => Request | Promise<Request>>> = {
  authenticate: () => post(`${client}/authenticate?method=cert`, {}),
  'authenticate at the management API': () => post(`${bases.management}/authenticate?method=cert`, {}),
  'enroll by an authority': () => post(`${client}/enroll?method=ca`, {}),
  'typed enrollment by an authority': () => post(`${client}/enroll/ca`, {}),
  'the status page': () => ({ method: 'POST', path: '/status/login', body: 'method=cert', headers: form }),
  'OpenID Connect': async () => post('/oidc/login/cert', { id: await loginId() }),
  'the start of OpenID Connect': () => authorize,
}

test.runIf(process.platform === 'linux')(
  'no request of a stranger costs more than ten times the CPU of the cheapest failed login',
  async () => {
    const costs = new Map<string, number>()
    const odd: unknown[] = []
    const measure = async (what: string, requestOf: () => Request | Promise<Request>, by?: Certificate) => {
      const { cost, statuses } = await costOf(requestOf, by)
      costs.set(what, cost)
      if (statuses.some((status) => status >= 500 || status === 429)) odd.push([what, statuses])
    }
    for (
      let round = 0;
      round < 2;
      round++ // the first one compiles
    )
      for (const [what, requestOf] of Object.entries(loginFailures)) await measure(what, requestOf)
    const cheapest = Math.min(...costs.values())
    for (const [what, requestOf] of Object.entries(openOperations())) await measure(what, requestOf)
    for (const [what, requestOf] of Object.entries(longHeaders)) await measure(what, requestOf)
    const authorities = [...pemBlocksIn(network.caPem)].map((block) => block.text)
    for (const [chain, certificate] of Object.entries(await hostileChains(authorities)))
      for (const [what, requestOf] of Object.entries(chainOperations))
        await measure(`${what}, ${chain}`, requestOf, certificate)
    const dearest = [...costs].sort(([, a], [, b]) => b - a).slice(0, 5)
    expect(odd).toEqual([])
    expect(dearest.filter(([, cost]) => cost > 10 * cheapest)).toEqual([])
  },
)

test('a handshake with more certificates than any chain, or longer keys, is refused, and others are not', async () => {
  for (const [what, certificate] of Object.entries(await excessiveChains())) {
    using stranger = openStranger(certificate)
    using other = openStranger()
    const refused = await stranger.send(authorize).catch(() => 'refused')
    expect([what, refused]).toEqual([what, 'refused'])
    expect((await other.send(authorize)).status).toBe(302)
  }
})

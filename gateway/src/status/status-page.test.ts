import { hostname } from 'node:os'
import { Fault, type ProcessDescription, retryAfter } from '@overlay/rpc'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { ADMIN, ALICE, PARTIAL_ADMIN, sessionFor } from '../../testing/fakes.js'
import { startGateway, type TestGateway } from '../../testing/gateway.js'
import type { DescribedReplica } from './sources.js'

const DAY_MS = 86_400_000
const startedAtMs = Date.now() - 90_000 // part of what identifies a process, so all descriptions share it

const processOf = (more: Partial<ProcessDescription> = {}): ProcessDescription => ({
  host: 'h',
  pid: 7,
  version: '0.0.0',
  revision: 'sources',
  nodeVersion: '20.11.0',
  startedAtMs,
  position: 5,
  followed: [],
  queues: [],
  pool: { busy: 1, idle: 2, waiting: 0 },
  bus: 'ok',
  certificates: [],
  routers: undefined,
  slowRequests: [],
  refusals: [],
  ...more,
})
const policy = (more?: Partial<ProcessDescription>): DescribedReplica => ({
  service: 'policy',
  address: 'p:1',
  process: processOf(more),
})

let replicas: readonly DescribedReplica[] = []
let gateway: TestGateway
// a gateway remembers positions, so that one that has missed what another test has made up would be late
beforeEach(async () => {
  replicas = []
  gateway = await startGateway({ describeReplicas: async () => replicas })
})
afterEach(() => gateway[Symbol.asyncDispose]())

const noRows = async () => ({ rows: Buffer.from('[]'), total: 0 })
const html = { accept: 'text/html,*/*;q=0.8' }
const cookie = (token: string) => ({ ...html, cookie: `__Secure-status=${token}` })
const show = (token: string, path = '/status') => gateway.request(path, { headers: cookie(token) })
const post = (path: string, form: Record<string, string>, headers: Record<string, string> = html) =>
  gateway.request(path, {
    method: 'POST',
    headers: { 'content-type': 'application/x-www-form-urlencoded', ...headers },
    text: new URLSearchParams(form).toString(),
  })
const logIn = (headers?: Record<string, string>) =>
  post('/status/login', { method: 'password', username: 'admin', password: 'correct horse' }, headers)

test('a process of all components shows once what it counts for all of them', async () => {
  const own = {
    host: hostname(),
    pid: process.pid,
    startedAtMs: Math.round(performance.timeOrigin),
  }
  const queues = [{ name: 'hashes', running: 0, waiting: 0, refused: 3, refusedAtMs: Date.now() }]
  const another = { pid: 2, queues, position: 42 }
  const pki: DescribedReplica = { ...policy(another), service: 'pki' }
  replicas = [policy({ ...own, queues, position: 41 }), policy({ queues }), policy(another), pki]
  const { text } = await gateway.request('/status', { headers: { 'zt-session': ADMIN } })
  const { data } = JSON.parse(text)
  const rows: { service: string; position?: number; queues: object[] }[] = data.replicas
  expect(rows.map(({ service }) => service)).toEqual([
    'all components',
    'all components',
    'policy',
    'policy',
    'policy',
    'pki',
  ])
  expect(rows.map(({ position }) => position)).toEqual([undefined, undefined, 41, 5, 42, 42])
  expect(rows.slice(1).map(({ queues }) => queues.length)).toEqual([1, 0, 1, 0, 0])
})

test('without a cookie, a browser gets a form, which nothing may frame and which runs no script', async () => {
  const { status, headers, text } = await gateway.request('/status', { headers: html })
  expect([status, headers['cache-control'], headers['x-frame-options']]).toEqual([200, 'no-store', 'DENY'])
  const policy = String(headers['content-security-policy'])
  expect(policy).toContain("default-src 'none'")
  expect(policy).toContain("frame-ancestors 'none'")
  expect(policy).not.toContain('script-src')
  expect(text).toContain('action="/status/login"')
  expect(headers.refresh).toBe(undefined)
})

test('a login leads to the page, with a cookie for the page alone', async () => {
  const { status, headers } = await logIn()
  expect([status, headers.location]).toEqual([303, '/status'])
  const [set = ''] = headers['set-cookie'] ?? []
  const attributes = 'Max-Age=900; Path=/status; Secure; HttpOnly; SameSite=Strict'
  expect(set).toBe(`__Secure-status=${ADMIN}; ${attributes}`)
})

test('the page shows whose it is and refreshes itself, which does not prolong the cookie', async () => {
  const page = await show(ADMIN)
  expect(page.status).toBe(200)
  expect(page.headers.refresh).toBe('10; url=/status?refresh')
  expect(page.headers['cache-control']).toBe('no-store')
  expect(page.headers['set-cookie']).toHaveLength(1)
  expect(page.text).toContain('Signed in as i-1111')
  const refreshed = await show(ADMIN, '/status?refresh')
  expect([refreshed.status, refreshed.headers['set-cookie']]).toEqual([200, undefined])
})

test('a refused login shows the form again, without a reason', async () => {
  gateway.fakes.instead.set('identity.authenticate', async () => {
    throw new Fault('INVALID_AUTH', 'wrong password')
  })
  const { status, headers, text } = await logIn()
  expect([status, headers['set-cookie']]).toEqual([401, undefined])
  expect(text).toContain('Sign-in failed')
  expect(text).not.toContain('wrong password')
})

test('a login that is refused for now says how long to wait', async () => {
  gateway.fakes.instead.set('identity.authenticate', async () => {
    throw retryAfter(30)
  })
  const { status, headers, text } = await logIn()
  expect([status, headers['retry-after'], headers['set-cookie']]).toEqual([429, '30', undefined])
  expect(text).toContain('Wait 30 seconds')
})

test.each([
  ['not an administrator', sessionFor(ALICE), {}, 'i-2222 is not an administrator'],
  [
    'in need of an external token',
    sessionFor(PARTIAL_ADMIN, {
      isAdmin: true,
      isPartial: true,
      json: Buffer.from('{"authQueries":[{"typeId":"EXT-JWT"}]}'),
    }),
    {},
    'a token of another provider',
  ],
  [
    'in need of a second factor that does not exist',
    sessionFor(PARTIAL_ADMIN, {
      isAdmin: true,
      isPartial: true,
      json: Buffer.from('{"authQueries":[{"typeId":"MFA"}]}'),
    }),
    { isVerified: false },
    'requires a second factor, and you have none',
  ],
])('a login of an identity that is %s ends its session and says why', async (_who, session, mfa, reason) => {
  gateway.fakes.instead.set('identity.authenticate', async () => session)
  gateway.fakes.instead.set('identity.getMfa', async () => mfa)
  const ended: unknown[] = []
  gateway.fakes.instead.set('identity.entities.delete', async ({ id }: { id: string }) => {
    ended.push(id)
    return { id, position: undefined }
  })
  const { status, headers, text } = await logIn()
  expect([status, headers['set-cookie'], ended]).toEqual([403, undefined, [session.id]])
  expect(text).toContain(reason)
})

test('a session without its second factor asks for a code, and shows nothing else', async () => {
  const { status, text } = await show(PARTIAL_ADMIN)
  expect(status).toBe(200)
  expect(text).toContain('action="/status/code"')
  expect(text).not.toContain('Replicas')
  gateway.fakes.instead.set('identity.passMfa', async () => {
    throw new Fault('MFA_INVALID_TOKEN')
  })
  const wrong = await post('/status/code', { code: '123456' }, cookie(PARTIAL_ADMIN))
  expect(wrong.status).toBe(401)
  expect(wrong.text).toContain('The code is not valid')
  const callers: unknown[] = []
  gateway.fakes.instead.set('identity.passMfa', async ({ code }: { code: string }, { caller }) => {
    callers.push([code, caller.apiSessionId])
    return { id: 'm', position: undefined }
  })
  const right = await post('/status/code', { code: ' 123456 ' }, cookie(PARTIAL_ADMIN))
  expect([right.status, right.headers.location]).toEqual([303, '/status'])
  expect(callers).toEqual([['123456', 's-3333']])
})

test.each([
  ['of an identity that is no administrator', ALICE, 403, 'i-2222 is not an administrator'],
  ['that has ended', '99999999-9999-4999-8999-999999999999', 200, 'Your session has ended'],
])('a session %s sees no status', async (_which, token, expected, reason) => {
  const { status, text } = await show(token)
  expect(status).toBe(expected)
  expect(text).toContain(reason)
  expect(text).not.toContain('Replicas')
})

test('signing out ends the session and takes the cookie', async () => {
  const { status, headers } = await post('/status/logout', {}, cookie(ADMIN))
  expect([status, headers.location]).toEqual([303, '/status'])
  expect(headers['set-cookie']?.[0]).toContain('__Secure-status=; Max-Age=0')
  const call = gateway.fakes.calls.findLast(({ method }) => method === 'identity.entities.delete')
  expect(call).toMatchObject({ request: { kind: 'api-sessions', id: 's-1111' } })
  expect(call?.context.caller.apiSessionId).toBe('s-1111')
})

test.each(['login', 'code', 'logout'])('a form of another site cannot %s', async (step) => {
  const before = gateway.fakes.calls.length
  for (const site of ['cross-site', 'same-site', 'none']) {
    const { status, headers } = await post(
      `/status/${step}`,
      { username: 'a', password: 'b', code: '1' },
      { ...cookie(ADMIN), 'sec-fetch-site': site },
    )
    expect([status, headers['set-cookie']]).toEqual([403, undefined])
  }
  expect(gateway.fakes.calls.slice(before)).toEqual([])
})

test('a form of our own page can', async () => {
  expect((await logIn({ ...html, 'sec-fetch-site': 'same-origin' })).status).toBe(303)
})

test.each([
  ['POST /status', 405],
  ['GET /status/login', 405],
  ['GET /status/other', 404],
])('%s is answered %i', async (operation, expected) => {
  const [method = '', path = ''] = operation.split(' ')
  expect((await gateway.request(path, { method })).status).toBe(expected)
})

test('a program gets JSON with the session of an administrator, and never with the cookie', async () => {
  gateway.fakes.instead.set('sessions.entities.list', noRows)
  replicas = [policy({ routers: 3 }), { service: 'pki', address: 'k:1', problem: 'does not answer' }]
  const { status, headers, json } = await gateway.request('/status', { token: ADMIN })
  expect([status, headers['content-type'], headers['cache-control']]).toEqual([
    200,
    'application/json',
    'no-store',
  ])
  expect(json.data).toMatchObject({
    attention: [{ level: 'critical', text: 'pki at k:1 does not answer.' }],
    replicas: [
      { service: 'gateway', answers: true },
      { service: 'policy', answers: true, process: 'h/7', position: 5, connectedRouters: 3 },
      { service: 'pki', address: 'k:1', answers: false, problem: 'does not answer' },
    ],
    offlineRouters: { total: 0, names: [] },
  })
  for (const [token, reason] of [
    [ALICE, 'i-2222 is not an administrator.'],
    [PARTIAL_ADMIN, 'The session lacks its second factor.'],
  ] as const) {
    const refused = await gateway.request('/status', { token })
    expect([refused.status, refused.json.error?.cause?.message]).toEqual([401, reason])
  }
  const withCookie = await gateway.request('/status', {
    headers: { accept: 'application/json', cookie: `__Secure-status=${ADMIN}` },
  })
  expect(withCookie.status).toBe(401)
})

test('texts of clients are escaped', async () => {
  const refusal = {
    atMs: 1,
    message: 'login refused',
    reason: 'x',
    sourceAddress: '',
    facts: { a: '<script>' },
  }
  replicas = [policy({ refusals: [refusal] })]
  const { text } = await show(ADMIN)
  expect(text).toContain('a: &lt;script&gt;')
  expect(text).not.toContain('<script>')
})

const certificate = (role: string, state: string, days: number) => ({
  role,
  state,
  expiresAtMs: Date.now() + days * DAY_MS + 60_000,
})
const queue = { name: 'passwords', running: 1, waiting: 0, refused: 3 }

test.each([
  [
    'a replica that is away',
    [{ service: 'policy', address: 'p:1', problem: 'cannot be reached' }],
    'critical',
    'policy at p:1 cannot be reached.',
  ],
  [
    'a replica without the bus',
    [policy({ bus: 'unavailable' })],
    'warning',
    'policy h/7 is not connected to the bus: changes reach it later.',
  ],
  [
    'a certificate of the network in its last two weeks',
    [policy({ certificates: [certificate('root', 'active', 13)] })],
    'warning',
    'The certificate “root, active” expires in 13 days.',
  ],
  [
    'one that has expired',
    [policy({ certificates: [certificate('server', 'active', -1)] })],
    'critical',
    'The certificate “server, active” has expired.',
  ],
  [
    'a certificate between processes that is not replaced',
    [policy({ certificates: [certificate('process', '', 1)] })],
    'warning',
    'The certificate “policy, for other processes” expires in 1 day.',
  ],
  [
    'a queue that was full',
    [policy({ queues: [{ ...queue, refusedAtMs: Date.now() - 60_000 }] })],
    'warning',
    'The queue “passwords” of policy h/7 has been full within 10 minutes.',
  ],
  [
    'several releases',
    [policy({ version: '9.9.9' })],
    'warning',
    'Several releases run: 0.0.0 (sources), 9.9.9 (sources).',
  ],
] as const)('%s needs attention', async (_what, described, level, text) => {
  gateway.fakes.instead.set('sessions.entities.list', noRows)
  replicas = described
  const { json } = await gateway.request('/status', { token: ADMIN })
  expect((json.data as { attention: unknown }).attention).toEqual([{ level, text }])
})

test.each([
  [
    'a certificate of the network with two weeks left',
    [policy({ certificates: [certificate('root', 'active', 14)] })],
  ],
  ['a retired certificate', [policy({ certificates: [certificate('signing', 'retired', 1)] })]],
  [
    'a certificate between processes with two days left',
    [policy({ certificates: [certificate('process', '', 2)] })],
  ],
  [
    'a queue that was full long ago',
    [policy({ queues: [{ ...queue, refusedAtMs: Date.now() - 3_600_000 }] })],
  ],
  [
    'a follower that is behind at the first look',
    [
      policy({ position: 10 }),
      {
        ...policy({ position: 1, followed: [{ schema: 'policy', position: 3, silentMs: 9 }] }),
        service: 'sessions',
      },
    ],
  ],
] as const)('%s does not', async (_what, described) => {
  gateway.fakes.instead.set('sessions.entities.list', noRows)
  replicas = described
  const { json } = await gateway.request('/status', { token: ADMIN })
  expect((json.data as { attention: unknown }).attention).toEqual([])
  expect((await show(ADMIN)).text).toContain('Nothing needs attention.')
})

test('offline routers need attention; without their owner they are unknown', async () => {
  const list = async () => ({ rows: Buffer.from('[{"name":"r1"},{"name":"r2"}]'), total: 9 })
  gateway.fakes.instead.set('sessions.entities.list', list)
  expect((await show(ADMIN)).text).toContain('9 edge routers are offline: r1, r2, ….')
  gateway.fakes.instead.set('sessions.entities.list', async () => {
    throw new Fault('UNAVAILABLE')
  })
  expect((await show(ADMIN)).text).toContain('Unknown: sessions does not answer.')
})

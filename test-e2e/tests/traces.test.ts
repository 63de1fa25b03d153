import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type ReceivedSpan, startCollector, type TestCollector } from '@overlay/process/tracing/testing'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { type Network, startNetwork } from '../network.js'
import { startTraffic, type Traffic } from '../traffic.js'

const SECRET = 'credential-for-the-collector'
/** The span of a client, and its traces. */
const PARENT = 'b7ad6b7169203331'
const ofIdentity = '7'.repeat(32)
const ofSession = '8'.repeat(32)
const untraced = '9'.repeat(32)

const asClient = (traceId: string, flags = '01') => ({ traceparent: `00-${traceId}-${PARENT}-${flags}` })

let collector: TestCollector
let traffic: Traffic
beforeAll(async () => {
  collector = await startCollector()
  vi.stubEnv('OTEL_EXPORTER_OTLP_ENDPOINT', collector.url)
  vi.stubEnv('OTEL_EXPORTER_OTLP_HEADERS', `authorization=${SECRET}`)
  traffic = await startTraffic()
  const { admin, network } = traffic
  const router = await traffic.router('router')
  const { serviceId } = await traffic.hosted('echo', router)
  const { member } = await traffic.dialed(serviceId, router)
  const other = await traffic.service('other')

  const identity = { name: 'of-a-trace', type: 'Device', isAdmin: false }
  await admin.call('POST', '/identities', identity, asClient(ofIdentity))
  await member.call('POST', '/sessions', { serviceId: other, type: 'Dial' }, asClient(ofSession))
  await admin.call('POST', '/identities', { ...identity, name: 'unrecorded' }, asClient(untraced, '00'))
  await network.stop() // sends the last spans
})
afterAll(async () => {
  vi.unstubAllEnvs()
  await traffic[Symbol.asyncDispose]()
  await collector[Symbol.asyncDispose]()
})

const logOf = ({ home }: Network, name: string): Promise<string> =>
  readFile(join(home, `${name}.log`), 'utf8')

const spansOf = (traceId: string) => collector.spans.filter((span) => span.traceId === traceId)

/** One line for each span, below that of its parent: `gateway server POST /identities`. */
const treeOf = (spans: readonly ReceivedSpan[], parentId: string, indent = ''): string[] =>
  spans
    .filter((span) => span.parentId === parentId)
    .flatMap(({ id, service, kind, name }) => [
      `${indent}${service.replace('overlay-', '')} ${kind} ${name}`,
      ...treeOf(spans, id, `${indent}  `),
    ])

test('the trace of a client goes on over the gateway, the owner of a new identity, and its database', () => {
  expect(treeOf(spansOf(ofIdentity), PARENT)).toEqual([
    'gateway server POST /edge/management/v1/identities',
    '  gateway client overlay.entity.v1.EntityService/Create',
    '    identity server overlay.entity.v1.EntityService/Create',
    '      identity client create-identities identity',
  ])
  const [request, , , statement] = [...spansOf(ofIdentity)].sort((a, b) => depthOf(a) - depthOf(b))
  expect(request?.attributes).toMatchObject({
    'http.request.method': 'POST',
    'http.route': '/edge/management/v1/identities',
    'http.response.status_code': 201,
    'overlay.api': 'management',
    'overlay.request_id': expect.stringMatching(/./),
  })
  expect(statement?.attributes).toMatchObject({
    'db.system.name': 'postgresql',
    'db.namespace': 'identity',
    'db.query.text': expect.stringContaining('insert into identity'),
  })
})

const depthOf = ({ traceId, parentId }: ReceivedSpan): number => {
  const parent = spansOf(traceId).find(({ id }) => id === parentId)
  return parent ? 1 + depthOf(parent) : 0
}

test('the trace of a new session contains the question for its authorization', () => {
  const tree = treeOf(spansOf(ofSession), PARENT)
  expect(tree.slice(0, 5)).toEqual([
    'gateway server POST /edge/client/v1/sessions',
    '  gateway client overlay.sessions.v1.SessionsService/CreateSession',
    '    sessions server overlay.sessions.v1.SessionsService/CreateSession',
    '      sessions client overlay.policy.v1.PolicyService/Authorize',
    '        policy server overlay.policy.v1.PolicyService/Authorize',
  ])
  // policy may have to read changes before it can answer
  expect(tree.slice(5)).toContainEqual(expect.stringMatching(/^ {6}sessions client .* sessions$/))
})

test('a client decides that its request is not recorded', () => {
  expect(spansOf(untraced)).toEqual([])
})

test('a request of a router for a circuit begins a trace', () => {
  const circuit = collector.spans.find(({ name }) => name === 'CreateCircuit')
  expect(circuit).toMatchObject({ service: 'overlay-sessions', kind: 'server', parentId: '', isError: false })
  const [, ...below] = treeOf(spansOf(circuit?.traceId ?? ''), '')
  expect(below).toContainEqual(expect.stringMatching(/^ {2}sessions client insert/))
})

test('traces begin with requests, are complete, and contain no ids or values', () => {
  const ids = new Set([PARENT, ...collector.spans.map(({ id }) => id)])
  for (const { name, parentId } of collector.spans) {
    if (parentId === '') expect(name).toMatch(/^(GET|POST|PUT|PATCH|DELETE) \/|^CreateCircuit$/)
    else expect(ids, name).toContain(parentId)
    if (name.includes('/edge-routers/')) expect(name).toMatch(/\/edge-routers\/\{id\}$/)
  }
  expect(collector.spans.some(({ name }) => name.includes('{id}'))).toBe(true)
  expect(JSON.stringify(collector.spans)).not.toContain('of-a-trace')
})

test('the collector gets the credentials, the logs do not', async () => {
  expect(collector.headers().authorization).toBe(SECRET)
  for (const name of ['gateway', 'identity', 'pki', 'policy', 'sessions', 'launcher'])
    expect(await logOf(traffic.network, name)).not.toContain(SECRET)
})

test('a product whose collector is away serves, warns once in each process, and stops', async () => {
  const gone = await startCollector()
  await gone[Symbol.asyncDispose]()
  vi.stubEnv('OTEL_EXPORTER_OTLP_ENDPOINT', gone.url)
  vi.stubEnv('OTEL_EXPORTER_OTLP_TIMEOUT', '100')
  await using network = await startNetwork()
  const admin = await network.admin()
  const warnings = async () =>
    (await logOf(network, 'gateway')).split('\n').filter((line) => line.includes('"traces not sent"'))
  await admin.request('GET', '/identities')
  await expect.poll(async () => (await warnings()).length).toBe(1)
  await admin.request('GET', '/identities')
  await network.stop()
  expect(await warnings()).toHaveLength(1)
})

test('the programs of the processes do not contain the library', async () => {
  const root = join(import.meta.dirname, '../..')
  for (const component of ['gateway', 'services/identity', 'services/sessions']) {
    const [main, sdk] = await Promise.all(
      ['main', 'tracing-sdk'].map((name) => readFile(join(root, component, `dist/${name}.js`), 'utf8')),
    )
    expect(main).not.toContain('BatchSpanProcessor')
    expect(sdk).toContain('BatchSpanProcessor')
  }
})

import { kinds } from '@overlay/model'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { management } from '../../gateway/src/api/operations.js'
import type { Admin } from '../admin.js'
import { type Client, openClient } from '../client.js'
import { streamEvents } from '../event-stream.js'
import { type Network, startNetwork } from '../network.js'
import { until } from '../traffic.js'
import { samples } from './samples.js'

let network: Network
let admin: Admin
let audit: Client
let token: string

const credentials = { username: 'admin', password: 'correct horse' }

beforeAll(async () => {
  network = await startNetwork()
  admin = await network.admin()
  const server = { addresses: [network.address], caPem: network.caPem }
  using client = openClient(server, '/edge/management/v1')
  token = (await client.request<{ token: string }>('POST', '/authenticate?method=password', credentials))
    .token
  audit = openClient(server, '/audit/v1')
  audit.use(token)
})
afterAll(async () => {
  audit[Symbol.dispose]()
  await network[Symbol.asyncDispose]()
})

interface Change {
  readonly eventId: string
  readonly eventType: string
  readonly kind: string
  readonly entityId: string
  readonly cursor: string
  readonly metadata: { readonly requestId?: string }
}

const filtered = (filter: string): string => `filter=${encodeURIComponent(filter)}`
const list = (query: string): Promise<Change[]> => audit.request<Change[]>('GET', `/changes?${query}`)
async function exported(query = ''): Promise<Change[]> {
  const { body, type } = await audit.call('GET', `/export?${query}`)
  expect(type).toBe('application/x-ndjson')
  return String(body.data)
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line) as Change)
}

test('a change by an administrator is in the audit at once, with author, states and request', async () => {
  const id = await admin.create('services', { name: 'wiki', encryptionRequired: true })
  await admin.request('PATCH', `/services/${id}`, { name: 'docs' })
  await admin.request('DELETE', `/services/${id}`)
  const changes = await list(filtered(`entityId = "${id}"`))
  const author = { type: 'identity', id: expect.any(String), name: 'Default Admin' }
  const source = { type: 'rest', remoteAddr: '127.0.0.1' }
  const metadata = { author, source, requestId: expect.any(String) }
  const common = {
    namespace: 'entityChange',
    entityType: 'services',
    kind: 'services',
    entityId: id,
    metadata,
  }
  const [wiki, docs] = [{ name: 'wiki' }, { name: 'docs' }]
  expect(changes).toMatchObject([
    { ...common, eventType: 'deleted', initialState: docs },
    { ...common, eventType: 'updated', initialState: wiki, finalState: docs },
    { ...common, eventType: 'created', finalState: wiki },
  ])
  const [deleted] = changes
  expect(await audit.request('GET', `/changes/${deleted?.eventId}`)).toEqual(deleted)
  expect(await list(filtered(`requestId = "${deleted?.metadata.requestId}"`))).toContainEqual(deleted)
})

test('changes of every service are in the stream after their commit; the list fills a gap from their cursor', async () => {
  const { address, caPem } = network
  let last: Change
  {
    using stream = await streamEvents({ address, caPem, token }, ['entityChange'])
    const created = {
      services: await admin.create('services', { name: 'streamed', encryptionRequired: true }),
      identities: await admin.create('identities', { name: 'streamed', type: 'Device', isAdmin: false }),
      cas: await admin.create('cas', (await samples.cas?.(admin, 'streamed')) ?? {}),
      'edge-routers': await admin.create('edge-routers', { name: 'streamed' }),
    }
    for (const [kind, entityId] of Object.entries(created)) {
      const { eventId } = await stream.event({ kind, entityId, eventType: 'created' })
      await stream.event({ eventId, eventType: 'committed' })
    }
    last = stream.events.findLast(({ cursor }) => cursor !== undefined) as unknown as Change
  }
  const missed = await admin.create('services', { name: 'missed', encryptionRequired: true })
  const behind = await until(async () => {
    const changes = await list(`after=${last.cursor}`)
    return changes.some(({ entityId }) => entityId === missed) ? changes : undefined
  })
  expect(behind.map(({ eventId }) => eventId)).not.toContain(last.eventId)
  expect((await exported(`after=${last.cursor}`)).map(({ eventId }) => eventId)).toEqual(
    expect.arrayContaining(behind.map(({ eventId }) => eventId)),
  )
})

test('the audit of no kind contains a secret', async () => {
  const secrets = new Set([token, credentials.password])
  const writable = [...kinds.values()].filter(({ kind }) => kind in samples && `POST /${kind}` in management)
  for (const { kind } of writable) {
    const body = (await samples[kind]?.(admin, `secret-${kind}`)) ?? {}
    const id = await admin.create(kind, body)
    addSecrets(body, secrets)
    addSecrets(await admin.request('GET', `/${kind}/${id}`), secrets)
    if (`PATCH /${kind}/{id}` in management) await admin.call('PATCH', `/${kind}/${id}`, { tags: { a: 'b' } })
    await admin.call('DELETE', `/${kind}/${id}`)
  }
  await admin.enroll({ name: 'secret-member' })
  for (const kind of ['enrollments', 'api-sessions', 'sessions'])
    addSecrets(await admin.request('GET', `/${kind}?limit=500`), secrets)
  const text = String((await audit.call('GET', '/export')).body.data)
  for (const { kind } of writable) expect(text).toContain(`"kind":"${kind}"`)
  expect(secrets.size).toBeGreaterThan(5)
  expect([...secrets].filter((secret) => text.includes(secret))).toEqual([])
})

/** The values of members that are named like secrets, at any depth. */
function addSecrets(value: unknown, secrets: Set<string>): void {
  if (typeof value !== 'object' || value === null) return
  for (const [name, member] of Object.entries(value)) {
    if (typeof member === 'string' && member !== '' && /^(token|jwt|password|secret)$|Token$|Jwt$/.test(name))
      secrets.add(member)
    addSecrets(member, secrets)
  }
}

test('while one service does not answer, the audit fails and names it', async () => {
  const name = [...network.processes.keys()].find((name) => name.startsWith('policy')) ?? ''
  const pid = network.processes.get(name)?.pid() ?? 0
  process.kill(pid, 'SIGSTOP')
  try {
    const { status, body } = await audit.call('GET', '/changes')
    expect(status).toBe(503)
    expect(JSON.stringify(body.error?.cause)).toContain('the audit of policy does not answer')
  } finally {
    process.kill(pid, 'SIGCONT')
  }
})

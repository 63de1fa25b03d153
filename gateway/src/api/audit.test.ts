import { type Context, Fault } from '@overlay/rpc'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { ADMIN, ALICE, PARTIAL_ADMIN } from '../../testing/fakes.js'
import { startGateway, type TestGateway } from '../../testing/gateway.js'

let gateway: TestGateway
beforeEach(async () => {
  gateway = await startGateway()
})
afterEach(() => gateway[Symbol.asyncDispose]())

const get = (path: string, token = ADMIN) => gateway.request(`/audit/v1${path}`, { token })

/** Changes at these times, each of the next service. */
function add(...times: readonly number[]): void {
  const owners = ['identity', 'pki', 'policy', 'sessions'] as const
  for (const [n, atMs] of times.entries())
    gateway.fakes.audit(owners[n % owners.length] ?? 'identity', { atMs, event: { at: atMs } })
}
const timesOf = ({ json }: { readonly json: { readonly data?: unknown } }) =>
  (json.data as readonly { at: number }[]).map(({ at }) => at)
const nextOf = ({ json }: { readonly json: { readonly meta?: unknown } }) =>
  (json.meta as { next: string | null }).next

test('changes of all services are listed newest first, in pages', async () => {
  add(1, 2, 3, 4, 5)
  const first = await get('/changes?limit=3')
  expect([timesOf(first), nextOf(first)]).toEqual([[5, 4, 3], '3.policy.1'])
  expect(first.headers['cache-control']).toBe('no-store')
  const second = await get(`/changes?limit=3&before=${nextOf(first)}`)
  expect([timesOf(second), nextOf(second)]).toEqual([[2, 1], null])
})

test('behind a cursor, changes are listed oldest first, and the last page says where to continue', async () => {
  add(1, 2, 3)
  const first = await get('/changes?after=1.identity.1')
  expect(timesOf(first)).toEqual([2, 3])
  add(2000)
  expect(timesOf(await get(`/changes?after=${nextOf(first)}`))).toEqual([2000])
})

test('the filter reaches all services', async () => {
  await get(`/changes?filter=${encodeURIComponent('kind = "services"')}`)
  const asked = gateway.fakes.calls.filter(({ method }) => method.endsWith('.audit.list'))
  expect(asked.map(({ method }) => method.split('.')[0]).sort()).toEqual([
    'identity',
    'pki',
    'policy',
    'sessions',
  ])
  for (const { request } of asked) expect(request).toMatchObject({ filter: 'kind = "services"' })
})

test('one change is read by its id', async () => {
  add(7)
  expect((await get('/changes/identity.1')).json).toEqual({ data: { at: 7 }, meta: {} })
})

test.each(['identity.2', 'nothing.1', 'identity', '7', 'identity.1x'])(
  'there is no change %s',
  async (id) => {
    const { status, json } = await get(`/changes/${id}`)
    expect([status, json.error?.cause?.message]).toEqual([404, `change with id ${id} not found`])
  },
)

test.each([
  '/changes?limit=0',
  '/changes?limit=501',
  '/changes?limit=-1',
  '/changes?limit=x',
  '/changes?after=x',
  '/changes?before=1.identity.',
  '/changes?after=1.identity.1&before=2.identity.1',
  '/changes?filter=kind%20=',
  '/changes?filter=true%20limit%203',
  '/export?after=x',
  '/export?filter=((',
])('%s is refused as bad input', async (path) => {
  expect((await get(path)).status).toBe(400)
})

test.each(['/changes', '/changes/identity.1', '/export', '/nothing'])(
  '%s is for administrators with all their factors',
  async (path) => {
    for (const token of [ALICE, PARTIAL_ADMIN])
      expect((await get(path, token)).status).toBe(path === '/nothing' ? 404 : 401)
    expect((await gateway.request(`/audit/v1${path}`)).status).toBe(401)
    expect(gateway.fakes.calls.filter(({ method }) => method.includes('.audit.'))).toEqual([])
  },
)

test.each(['/changes', '/export', '/changes/policy.1'])(
  'without the audit of one service %s fails, and names the service',
  async (path) => {
    add(1, 2, 3, 4)
    for (const method of ['list', 'get'])
      gateway.fakes.instead.set(`policy.audit.${method}`, async () => {
        throw new Fault('UNAVAILABLE')
      })
    const { status, json } = await get(path)
    expect(status).toBe(503)
    expect(json.error?.cause?.message).toBe('the audit of policy does not answer in time')
  },
)

const linesOf = (text: string) => text.split('\n').slice(0, -1)

test('an export has all changes as JSON lines, oldest first, and is logged with its author and filter', async () => {
  const times = Array.from({ length: 1200 }, (_, n) => n + 1)
  add(...times)
  const { status, headers, text } = await get('/export?filter=true')
  expect([status, headers['content-type']]).toEqual([200, 'application/x-ndjson'])
  expect(linesOf(text).map((line) => JSON.parse(line).at)).toEqual(times)
  expect(gateway.logged).toMatchObject([
    { message: 'audit exported', identityId: 'i-1111', filter: 'true' },
    { message: 'audit export ended', identityId: 'i-1111', changes: 1200, isComplete: true },
  ])
})

test('an export continues behind a cursor', async () => {
  add(1, 2, 3)
  expect(linesOf((await get('/export?after=2.pki.1')).text)).toEqual(['{"at":3}'])
})

test('an export without changes is empty', async () => {
  expect((await get('/export')).text).toBe('')
})

test.each([1, 2])('an export is cut off when its session ends at read %i', async (last) => {
  add(...Array.from({ length: 1200 }, (_, n) => n + 1))
  const { services, instead, sessions } = gateway.fakes
  let reads = 0
  const read = async (request: never, context: Context) => {
    reads++
    instead.delete('sessions.audit.list')
    const page = await services.auditOf('sessions').list(request, context)
    instead.set('sessions.audit.list', read)
    if (reads < last) return page
    const session = sessions.get(ADMIN)
    sessions.delete(ADMIN)
    gateway.fakes.change('identity', [{ kind: 'api-sessions', id: session?.id ?? '' }])
    await expect.poll(async () => (await get('/changes/policy.1')).status).toBe(401)
    return page
  }
  instead.set('sessions.audit.list', read)
  await expect(get('/export')).rejects.toThrow(/aborted|hang up/)
  expect(reads).toBe(last)
  expect(gateway.logged.at(-1)).toMatchObject({ message: 'audit export ended', isComplete: false })
})

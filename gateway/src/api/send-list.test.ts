import { randomUUID } from 'node:crypto'
import { gunzipSync } from 'node:zlib'
import type { Service } from '@overlay/model'
import type { ApiSession } from '@overlay/rpc'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { ADMIN, sessionFor } from '../../testing/fakes.js'
import { startGateway, type TestGateway } from '../../testing/gateway.js'
import { management } from './operations.js'

let gateway: TestGateway
beforeAll(async () => {
  gateway = await startGateway()
})
afterAll(() => gateway[Symbol.asyncDispose]())

const list = '/edge/management/v1/services'
const rows = (...pages: string[]) => gateway.fakes.rows.set('policy services', pages)

test('no cache may keep lists of kinds that show tokens, whatever their rows', async () => {
  const kindsOf = async (value: string | undefined) => {
    const kinds = Object.keys(management).flatMap(
      (operation) => /^GET \/([^/{]+)$/.exec(operation)?.[1] ?? [],
    )
    const answers = kinds.map(async (kind) => {
      const { headers, json } = await gateway.request(`/edge/management/v1/${kind}`, { token: ADMIN })
      return Array.isArray(json.data) && headers['cache-control'] === value ? [kind] : []
    })
    return (await Promise.all(answers)).flat()
  }
  expect((await kindsOf('no-store')).sort()).toEqual([
    'api-sessions',
    'cas',
    'edge-routers',
    'enrollments',
    'routers',
    'sessions',
    'transit-routers',
  ])
  gateway.fakes.rows.set('identity identities', ['[{"enrollment":{"ott":{"token":"x"}}}]'])
  expect(await kindsOf(undefined)).toContain('identities')
})

test('a cache must not show an answer to another session', async () => {
  const varies = async (path: string, token?: string) =>
    (await gateway.request(path, { ...(token && { token }) })).headers.vary
  expect(await varies('/version')).toBeUndefined()
  expect(await varies(list, ADMIN)).toContain('zt-session')
  rows(`[{"id":"${'a'.repeat(2000)}"}]`)
  expect(await varies(list, ADMIN)).toContain('zt-session')
  const open = '/edge/management/v1/specs/edge-management/spec' // needs no session, but tells the end of one
  expect(await varies(open)).toBe('accept-encoding')
  expect(await varies(open, ADMIN)).toContain('zt-session')
})

test('a page is the rows of their owner, with its paging', async () => {
  rows('[{"id":"a","n":9223372036854775807}]')
  const { text, json } = await gateway.request(`${list}?limit=3`, { token: ADMIN })
  expect(text).toContain('"data":[{"id":"a","n":9223372036854775807}]') // bytes as they came
  expect(json.meta).toMatchObject({ pagination: { limit: 3, offset: 0, totalCount: 7 } })
  expect(json.meta).toHaveProperty('filterableFields')
})

test('"all" is fetched page after page behind the last row, each with a deadline of its own', async () => {
  rows('[{"id":"a"},{"id":"b"}]', '[]', '[{"id":"c"}]')
  const { text, json } = await gateway.request(`${list}?limit=-1`, { token: ADMIN })
  expect(json.data).toEqual([{ id: 'a' }, { id: 'b' }, { id: 'c' }])
  expect(text).toContain('"limit":9223372036854775807,"offset":0,"totalCount":7')
  const after = gateway.fakes.calls
    .filter(({ method }) => method === 'policy.entities.list')
    .slice(-3)
    .map(({ request }) => (request as { query: { after: Buffer } }).query.after.toString())
  expect(after).toEqual(['', '1', '2'])
})

test('pages travel compressed when that is offered', async () => {
  rows('[{"id":"a"}]', '[{"id":"b"}]')
  const { body, headers } = await gateway.request(`${list}?limit=-1`, {
    token: ADMIN,
    headers: { 'accept-encoding': 'gzip' },
  })
  expect(headers['content-encoding']).toBe('gzip')
  expect(JSON.parse(gunzipSync(body).toString())).toMatchObject({ data: [{ id: 'a' }, { id: 'b' }] })
})

test('a list that breaks off cannot be taken for whole', async () => {
  rows('[{"id":"a"}]', '[{"id":"b"}]')
  let page = 0
  gateway.fakes.instead.set('policy.entities.list', async () => {
    if (page++ > 0) throw new Error('gone')
    return {
      rows: Buffer.from('[{"id":"a"}]'),
      total: 2,
      limit: '1',
      offset: 0,
      next: Buffer.from('1'),
      contentKey: '',
    }
  })
  await expect(gateway.request(`${list}?limit=-1`, { token: ADMIN })).rejects.toThrow()
  gateway.fakes.instead.delete('policy.entities.list')
})

/** Lists all of three pages. Behind the first one, the session becomes another one, or ends. */
async function listWhile(path: string, method: string, after: Partial<ApiSession> | undefined) {
  const { sessions, instead, services, calls } = gateway.fakes
  const token = randomUUID()
  const before = sessionFor(token, { isAdmin: true })
  sessions.set(token, before)
  instead.set(method, async (request: never, context) => {
    instead.delete(method)
    const page = await services.entitiesOf(method.split('.')[0] as Service).list(request, context)
    if (after) sessions.set(token, { ...before, ...after })
    else sessions.delete(token)
    gateway.fakes.change('identity', [{ kind: 'api-sessions', id: before.id }])
    await expect.poll(async () => (await gateway.request(`${list}/s1`, { token })).status).toBe(401)
    calls.splice(0)
    return page
  })
  const answer = gateway.request(`${path}?limit=-1`, { token })
  return { answer, later: () => calls.filter((call) => call.method === method) }
}

test.each<[string, Partial<ApiSession> | undefined]>([
  ['its session ends', undefined],
  ['its caller is no admin any more', { isAdmin: false }],
  ['a second factor is demanded', { isPartial: true }],
])('a long list is cut off when %s', async (_, after) => {
  rows('[{"id":"a"}]', '[{"id":"b"}]', '[{"id":"c"}]')
  const { answer, later } = await listWhile(list, 'policy.entities.list', after)
  await expect(answer).rejects.toThrow(/aborted|hang up/)
  expect(later()).toEqual([])
})

test('later pages of a long list are for the caller as it is by then', async () => {
  gateway.fakes.rows.set('sessions sessions', ['[{"id":"a"}]', '[{"id":"b"}]', '[]'])
  const { answer, later } = await listWhile('/edge/client/v1/sessions', 'sessions.entities.list', {
    isAdmin: false,
  })
  expect((await answer).json.data).toEqual([{ id: 'a' }, { id: 'b' }])
  expect(later().map(({ context }) => context.caller.isAdmin)).toEqual([false, false])
})

test('only longer answers are compressed, and only when that is offered', async () => {
  const offered = { 'accept-encoding': 'gzip, deflate, br' }
  rows(`[{"id":"${'a'.repeat(2000)}"}]`)
  const long = await gateway.request(list, { token: ADMIN, headers: offered })
  expect(long.headers).toMatchObject({ 'content-encoding': 'gzip', 'content-type': 'application/json' })
  expect(gunzipSync(long.body).toString()).toContain('aaaa')
  expect((await gateway.request(list, { token: ADMIN })).headers['content-encoding']).toBeUndefined()
  expect(
    (await gateway.request('/version', { headers: offered })).headers['content-encoding'],
  ).toBeUndefined()
  const refused = await gateway.request(list, { token: ADMIN, headers: { 'accept-encoding': 'gzip;q=0' } })
  expect(refused.headers['content-encoding']).toBeUndefined()
})

test('a linked list calls the service that knows the link, then the owner of the rows', async () => {
  gateway.fakes.instead.set('policy.entities.select', async () => ({
    ids: ['i1'],
    roles: [],
    symbol: '',
    value: '',
  }))
  await gateway.request(`${list}/s1/identities?policyType=dial`, { token: ADMIN })
  gateway.fakes.instead.delete('policy.entities.select')
  expect(gateway.fakes.calls.at(-2)).toMatchObject({
    method: 'policy.entities.select',
    request: {
      from: { kind: 'services', id: 's1' },
      link: 'identities',
      perspective: { policyType: 'dial' },
    },
  })
  expect(gateway.fakes.calls.at(-1)).toMatchObject({
    method: 'identity.entities.list',
    request: { kind: 'identities', within: { ids: ['i1'] } },
  })
})

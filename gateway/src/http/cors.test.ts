import { afterAll, beforeAll, expect, test } from 'vitest'
import { startGateway, type TestGateway } from '../../testing/gateway.js'

let gateway: TestGateway
beforeAll(async () => {
  gateway = await startGateway()
})
afterAll(() => gateway[Symbol.asyncDispose]())

const preflight = (headers: Record<string, string>) =>
  gateway.request('/edge/management/v1/services', { method: 'OPTIONS', headers })
const origin = 'https://x.example'

test('OPTIONS without an origin answers 200 with nothing', async () => {
  const { status, body, headers } = await preflight({})
  expect([status, body.length, headers['access-control-allow-origin'], headers.allow]).toEqual([
    200,
    0,
    undefined,
    undefined,
  ])
})

test('a preflight for listed methods and headers is allowed, with credentials', async () => {
  const { status, headers } = await preflight({
    origin,
    'access-control-request-method': 'PATCH',
    'access-control-request-headers': 'zt-session, Content-Type',
  })
  expect(status).toBe(200)
  expect(headers).toMatchObject({
    'access-control-allow-origin': '*',
    'access-control-allow-credentials': 'true',
    'access-control-allow-headers': 'zt-session,content-type',
    'access-control-allow-methods': 'PATCH',
  })
})

test.each([
  [
    'a header that is not listed is 403',
    { 'access-control-request-method': 'POST', 'access-control-request-headers': 'x-unknown' },
    403,
  ],
  ['a method that is not listed is 405', { 'access-control-request-method': 'TRACE' }, 405],
])('%s, and nothing is allowed', async (_rule, requested, expected) => {
  const { status, headers } = await preflight({ origin, ...requested })
  expect([status, headers['access-control-allow-origin']]).toEqual([expected, undefined])
})

test('answers and refusals to another origin may be read', async () => {
  for (const path of ['/version', '/no-such-thing', '/services']) {
    const { headers } = await gateway.request(path, { headers: { origin } })
    expect(headers['access-control-allow-origin']).toBe('*')
  }
})

import { once } from 'node:events'
import { newTokenKey, publishedKeys, signToken } from '@overlay/process/tokens/testing'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { WebSocket } from 'ws'
import { ADMIN, sessionFor } from '../../testing/fakes.js'
import { startGateway, type TestGateway } from '../../testing/gateway.js'
import { accessClaims } from '../../testing/tokens.js'
import { HEADER_BYTES } from '../limits.js'

const key = newTokenKey('k1')
const CURRENT = '/edge/client/v1/current-api-session'
const longest = 'x'.repeat(65_536)

let gateway: TestGateway
beforeAll(async () => {
  gateway = await startGateway({ headerBytes: HEADER_BYTES })
  gateway.fakes.instead.set('pki.getTokenKeys', async () => publishedKeys([key]))
  gateway.fakes.instead.set('identity.getBearerSession', async () =>
    sessionFor('', { json: Buffer.from('{}') }),
  )
})
afterAll(() => gateway[Symbol.asyncDispose]())

const bearer = (token: string) => ({ authorization: `Bearer ${token}` })

test('a token of tens of KiB is accepted, with other headers beside it', async () => {
  const token = signToken(key, accessClaims(Date.now(), { z_env: 'x'.repeat(48_000) }))
  expect(token.length).toBeGreaterThan(60_000)
  const { status } = await gateway.request(CURRENT, { headers: { ...bearer(token), x: 'y'.repeat(8192) } })
  expect(status).toBe(200)
})

test.each([
  CURRENT,
  '/edge/client/v1/version',
  '/edge/management/v1/authenticate?method=ext-jwt',
  '/oidc/userinfo',
  '/status',
])('at %s a token of the greatest length is judged, and a longer one refused as such', async (path) => {
  const method = path.includes('authenticate') ? 'POST' : 'GET'
  const send = (token: string) => gateway.request(path, { method, headers: bearer(token) })
  expect((await send(longest)).status).not.toBe(431)
  const { status, text } = await send(`${longest}x`)
  expect(status).toBe(431)
  expect(text).not.toBe('')
  await expect
    .poll(() => gateway.accessRecords.at(-1))
    .toMatchObject({ status: 431, c: { env: { faultCode: 'HEADERS_TOO_LARGE' } } })
})

test('a stream is refused for a token that is too long', async () => {
  const ws = new WebSocket(`wss://127.0.0.1:${gateway.port}/fabric/v1/ws-api`, {
    rejectUnauthorized: false,
    headers: bearer(`${longest}x`),
  })
  ws.on('error', () => undefined)
  const [, response] = await once(ws, 'unexpected-response')
  expect(response.statusCode).toBe(431)
  ws.terminate()
})

test('a request with hundreds of headers is refused', async () => {
  const get = (count: number) => {
    const more = Array.from({ length: count }, (_, n) => [`x${n}`, ''] as const)
    return gateway.request(CURRENT, {
      headers: { host: 'localhost', 'zt-session': ADMIN, ...Object.fromEntries(more) },
    })
  }
  expect((await get(240)).status).toBe(200)
  for (const count of [256, 1000])
    expect(await get(count)).toMatchObject({ status: 431, json: { error: { code: 'HEADERS_TOO_LARGE' } } })
})

test('a long target is accepted, and a head beyond the limit refused', async () => {
  const get = (length: number) =>
    gateway.request(`/edge/management/v1/services?filter=${'%20'.repeat(length / 3)}true`, { token: ADMIN })
  expect((await get(78_000)).status).toBe(200)
  expect(await get(82_000)).toMatchObject({ status: 431, json: { error: { code: 'HEADERS_TOO_LARGE' } } })
})

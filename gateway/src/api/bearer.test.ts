import { newTokenKey, publishedKeys, signToken } from '@overlay/process/tokens/testing'
import { Fault } from '@overlay/rpc'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { sessionFor } from '../../testing/fakes.js'
import { startGateway, type TestGateway } from '../../testing/gateway.js'
import { accessClaims } from '../../testing/tokens.js'

const key = newTokenKey('k1')
const ENDS_IN_MS = 86_400_000

let gateway: TestGateway
beforeAll(async () => {
  gateway = await startGateway()
})
afterAll(() => gateway[Symbol.asyncDispose]())

let isAdmin: boolean
let isPartial: boolean
beforeEach(() => {
  const { instead } = gateway.fakes
  isAdmin = false
  isPartial = false
  instead.set('pki.getTokenKeys', async () => publishedKeys([key]))
  instead.set('identity.getBearerSession', async ({ apiSessionId: id }: { apiSessionId: string }) => {
    const json = Buffer.from(JSON.stringify({ id }))
    return sessionFor('', { id, identityId: 'i-alice', isAdmin, isPartial, json, endsInMs: ENDS_IN_MS })
  })
  gateway.fakes.calls.length = 0
})

let count = 0
/** Of another session for each call. */
const newToken = (more: object = {}): string =>
  signToken(key, accessClaims(Date.now(), { z_asid: `s-${count++}`, ...more }))
const get = (path: string, token: string, more: Record<string, string> = {}) =>
  gateway.request(path, { headers: { authorization: `Bearer ${token}`, ...more } })
const statusAt = (path: string): Promise<number> => get(path, newToken()).then(({ status }) => status)

const CURRENT = '/edge/client/v1/current-api-session'
const asked = (): string[] =>
  gateway.fakes.calls.map(({ method }) => method).filter((method) => !method.includes('watch'))

test('an access token is a session on both APIs', async () => {
  expect(await statusAt(CURRENT)).toBe(200)
  expect(await statusAt('/edge/management/v1/current-api-session')).toBe(200)
})

test('a repeated request calls no service', async () => {
  const token = newToken()
  await get(CURRENT, token)
  gateway.fakes.calls.length = 0
  for (let i = 0; i < 5; i++) expect((await get(CURRENT, token)).status).toBe(200)
  expect(asked()).toEqual([])
})

test('the answer says when the token ends, and no cache may keep it or give it to others', async () => {
  const { headers, json } = await get(CURRENT, newToken())
  const seconds = Number(headers['expiration-seconds'])
  expect(seconds).toBeGreaterThan(1790)
  expect(seconds).toBeLessThan(1801)
  expect(headers).toMatchObject({
    'expires-at': expect.stringMatching(/ UTC$/),
    vary: expect.stringMatching(/zt-session, authorization$/),
    'cache-control': 'no-store',
  })
  expect(headers['zt-session']).toBeUndefined()
  expect(json.data).toMatchObject({
    expirationSeconds: expect.any(Number),
    token: expect.stringMatching(/^ey/),
  })
})

test.each([
  ['two spaces', (token: string) => `Bearer  ${token}`],
  ['no space', (token: string) => `Bearer${token}`],
  ['another scheme', (token: string) => `Basic ${token}`],
  ['a refresh token', () => `Bearer ${newToken({ z_t: 'r' })}`],
  ['a token of another issuer', () => `Bearer ${newToken({ iss: 'https://other:1280/oidc' })}`],
  ['a token of another key', () => `Bearer ${signToken(newTokenKey('k1'), accessClaims(Date.now()))}`],
])('%s is answered like no credentials', async (_what, header) => {
  const none = await gateway.request(CURRENT)
  const { status, json, headers } = await gateway.request(CURRENT, {
    headers: { authorization: header(newToken()) },
  })
  const [refusal, other] = [json, none.json].map(({ error }) => ({ ...error, requestId: '' }))
  expect([status, refusal]).toEqual([401, other])
  expect(headers['expires-at']).toBeUndefined()
})

test('the token of a stored session beside it decides alone', async () => {
  const token = newToken()
  await get(CURRENT, token)
  const unknown = { 'zt-session': '00000000-0000-4000-8000-000000000000' }
  expect((await get(CURRENT, token, unknown)).status).toBe(401)
  expect((await get(CURRENT, token, { 'zt-session': '' })).status).toBe(200)
})

test('an access token of an administrator is one everywhere', async () => {
  isAdmin = true
  const token = newToken()
  expect((await get('/edge/management/v1/services', token)).status).toBe(200)
  expect((await get('/fabric/v1/services', token)).status).toBe(200)
  const path = '/edge/management/v1/api-sessions/other'
  const authorization = `Bearer ${token}`
  expect((await gateway.request(path, { method: 'DELETE', headers: { authorization } })).status).toBe(200)
  expect(asked()).toContain('identity.entities.delete')
})

test('others get no operations of administrators, nor does one whose second factor is missing', async () => {
  expect(await statusAt('/edge/management/v1/services')).toBe(401)
  expect(await statusAt('/fabric/v1/services')).toBe(401)
  isAdmin = true
  isPartial = true
  expect(await statusAt('/edge/management/v1/services')).toBe(401)
  expect(await statusAt('/edge/client/v1/current-identity')).toBe(401)
  expect(await statusAt(CURRENT)).toBe(200)
})

test('logging out ends the session', async () => {
  const token = newToken({ z_asid: 's-mine' })
  const authorization = `Bearer ${token}`
  expect((await gateway.request(CURRENT, { method: 'DELETE', headers: { authorization } })).status).toBe(200)
  const ended = gateway.fakes.calls.find(({ method }) => method === 'identity.entities.delete')
  expect(ended?.request).toMatchObject({ kind: 'api-sessions', id: 's-mine' })
  gateway.fakes.instead.set('identity.getBearerSession', () => Promise.reject(new Fault('UNAUTHORIZED')))
  expect((await get(CURRENT, token)).status).toBe(401)
})

test('tokens of a key that is removed end at once, those of a retired one do not', async () => {
  const [retired, removed] = [newTokenKey('retired'), newTokenKey('removed')]
  const tokens = [retired, removed].map((one) => signToken(one, accessClaims(Date.now())))
  const statuses = () => Promise.all(tokens.map(async (token) => (await get(CURRENT, token)).status))
  gateway.fakes.instead.set('pki.getTokenKeys', async () => publishedKeys([key, retired, removed]))
  gateway.fakes.change('pki', [{ kind: 'keys', id: 'retired' }])
  await expect.poll(statuses).toEqual([200, 200])
  gateway.fakes.instead.set('pki.getTokenKeys', async () => publishedKeys([key, retired]))
  gateway.fakes.change('pki', [{ kind: 'keys', id: 'removed' }])
  await expect.poll(statuses).toEqual([200, 401])
})

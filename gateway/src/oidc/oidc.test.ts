import { openLog } from '@overlay/process'
import { newTokenKey, publishedKeys, signToken } from '@overlay/process/tokens/testing'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { ALICE, sessionFor } from '../../testing/fakes.js'
import { authorizeUrl, fails, ID, startOidc, type TestOidc } from '../../testing/oidc.js'
import { accessClaims } from '../../testing/tokens.js'
import { accessLog } from '../http/request-log.js'

const key = newTokenKey('k1')
const keys = publishedKeys([key])
const token = (claims: object) => signToken(key, accessClaims(Date.now(), claims))

let oidc: TestOidc
beforeAll(async () => {
  oidc = await startOidc()
})
beforeEach(() => {
  oidc.reset()
  oidc.gateway.fakes.instead.set('pki.getTokenKeys', async () => keys)
  oidc.gateway.fakes.instead.set('identity.getBearerSession', async () => sessionFor(ALICE))
})
afterAll(() => oidc[Symbol.asyncDispose]())

describe('metadata', () => {
  test('is the same at both addresses, and names only paths that exist', async () => {
    const { headers, text, json: document } = await oidc.request('/oidc/.well-known/openid-configuration')
    expect(headers['content-type']).toBe('application/json')
    expect((await oidc.request('/.well-known/openid-configuration')).text).toBe(text)
    const { openziti_endpoints: own, ...metadata } = document as Record<string, unknown>
    const urls = [...Object.entries(metadata), ...Object.entries(own as object)]
      .filter(([name, value]) => name !== 'issuer' && String(value).startsWith('https:'))
      .map(([, url]) => new URL(String(url)).pathname)
    expect(urls.length).toBe(13)
    for (const path of urls) expect((await oidc.request(path, { method: 'PUT' })).status).toBe(405)
  })

  test('has the keys', async () => {
    const { headers, text } = await oidc.request('/oidc/keys')
    expect([headers['content-type'], text]).toEqual(['application/json', keys.jwks.toString()])
  })
})

test.each(['/oidc', '/oidc/nothing', '/oidc/login/magic'])('%s does not exist', async (path) => {
  const { status, headers } = await oidc.request(path)
  expect([status, headers['content-type']]).toEqual([404, 'text/plain; charset=utf-8'])
  expect((await oidc.post(path, { id: ID })).status).toBe(404)
})

test('other origins may use the provider', async () => {
  const origin = { origin: 'https://app.example' }
  const preflight = await oidc.request('/oidc/oauth/token', {
    method: 'OPTIONS',
    headers: {
      ...origin,
      'access-control-request-method': 'POST',
      'access-control-request-headers': 'content-type',
    },
  })
  expect(preflight.status).toBe(200)
  const { headers } = await oidc.request('/oidc/.well-known/openid-configuration', { headers: origin })
  expect(headers['access-control-allow-origin']).toBe('*')
})

test('a body that is too large is refused before it is read', async () => {
  for (const path of ['/oidc/login/password', '/oidc/oauth/token', '/oidc/authorize'])
    expect((await oidc.post(path, { id: 'x'.repeat(100_000) })).status).toBe(400)
})

test('log lines contain no ids of logins, codes, tokens and states', async () => {
  const lines: string[] = []
  const destination = { write: (line: string) => void lines.push(line) }
  const log = accessLog(openLog('gateway', { level: 'info', format: 'json', destination }))
  oidc.gateway.accessRecords.splice(0)
  await oidc.request(authorizeUrl({ state: 'secret-state' }))
  await oidc.request(`/oidc/login/username?authRequestID=${ID}`)
  await oidc.post(`/oidc/login/password?id=${ID}`, { username: 'u', password: 'secret-password' })
  await oidc.request(`/oidc/authorize/callback?id=${ID}`)
  await oidc.request(`/oidc/nothing?id=${ID}`)
  await oidc.post('/oidc/oauth/token', { code: 'secret-code' })
  await oidc.request('/oidc/end_session?id_token_hint=secret-token')
  for (const record of oidc.gateway.accessRecords) log(record)
  expect(lines).toHaveLength(7)
  expect(lines.join('\n')).not.toMatch(new RegExp(`secret-|${ID}`))
})

describe('userinfo', () => {
  const ask = (bearer?: string, method = 'GET') =>
    oidc.request('/oidc/userinfo', {
      method,
      ...(bearer && { headers: { authorization: `Bearer ${bearer}` } }),
    })

  test('is empty, unless the profile was asked for', async () => {
    const { status, headers, text } = await ask(token({ scopes: ['openid'] }))
    expect([status, headers['content-type'], text]).toEqual([200, 'application/json', '{}'])
    const profile = { sub: 'i-2222', name: 'i-2222' }
    expect((await ask(token({ scopes: ['openid', 'profile'] }))).json).toEqual(profile)
    expect((await ask(token({ scopes: ['openid', 'profile'] }), 'POST')).json).toEqual(profile)
  })

  test.each<[string, string | undefined]>([
    ['no token', undefined],
    ['text', 'nothing'],
    ['an id token', token({ z_t: undefined })],
    ['the token of another issuer', token({ iss: 'https://other.example' })],
  ])('refuses %s', async (_, bearer) => {
    const { status, headers } = await ask(bearer)
    expect([status, headers['content-type']]).toEqual([401, 'text/plain; charset=utf-8'])
  })

  test('refuses refresh tokens, and tokens of sessions that have ended', async () => {
    const { status, text } = await ask(token({ z_t: 'r' }))
    expect([status, text]).toEqual([403, '{}'])
    oidc.gateway.fakes.instead.set('identity.getBearerSession', fails('UNAUTHORIZED'))
    expect((await ask(token({ jti: 'another' }))).status).toBe(401)
  })
})

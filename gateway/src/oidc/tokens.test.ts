import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { sessionFor } from '../../testing/fakes.js'
import { browser, fails, REDIRECT, startOidc, type TestOidc } from '../../testing/oidc.js'

let oidc: TestOidc
beforeAll(async () => {
  oidc = await startOidc()
})
beforeEach(() => oidc.reset())
afterAll(() => oidc[Symbol.asyncDispose]())

describe('the token endpoint', () => {
  const redeem = {
    grant_type: 'authorization_code',
    client_id: 'native',
    code: 'c',
    code_verifier: 'v',
    redirect_uri: REDIRECT,
  }
  const exchange = {
    grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
    subject_token: 't',
    subject_token_type: 'urn:ietf:params:oauth:token-type:refresh_token',
  }
  const basic = (text: string) => ({ authorization: `Basic ${Buffer.from(text).toString('base64')}` })
  const token = (form: object, headers = {}) =>
    oidc.post('/oidc/oauth/token', form as Record<string, string>, { headers })

  test('answers what identity issued, and forbids to keep it', async () => {
    const { status, headers, text } = await token({ ...redeem, scope: 'openid  x' })
    expect([status, headers['content-type'], text]).toEqual([200, 'application/json', '{"access_token":"a"}'])
    expect(headers).toMatchObject({ 'cache-control': 'no-store', pragma: 'no-cache' })
    expect(oidc.requestTo('getTokens')).toMatchObject({
      grantType: 'authorization_code',
      clientId: 'native',
      code: 'c',
      codeVerifier: 'v',
      redirectUri: REDIRECT,
      scopes: ['openid', 'x'],
    })
  })

  test('knows the client by HTTP Basic with an empty secret', async () => {
    const { client_id: _, ...form } = redeem
    expect((await token(form, basic('native:'))).status).toBe(200)
    expect((await token(exchange, basic('openziti:'))).status).toBe(200)
    expect((await token(redeem, basic('native:'))).status).toBe(200)
  })

  test.each<[string, object, object]>([
    ['no client', { ...redeem, client_id: '' }, {}],
    ['an unknown client', { ...redeem, client_id: 'nobody' }, {}],
    ['a member of all objects', { ...redeem, client_id: 'constructor' }, {}],
    ['a secret', redeem, basic('native:secret')],
    ['a secret in the form', { ...redeem, client_secret: 'secret' }, {}],
    ['another client in the header', redeem, basic('openziti:')],
    ['a header that is none', redeem, { authorization: 'Basic x' }],
    ['an exchange without the header', { ...exchange, client_id: 'native' }, {}],
  ])('refuses %s', async (_, form, headers) => {
    const answer = await token(form, headers)
    expect([answer.status, answer.json]).toMatchObject([401, { error: 'invalid_client' }])
    expect(answer.headers['cache-control']).toBe('no-store')
    expect(oidc.called('getTokens')).toBe(0)
  })

  test('refuses an unknown client of a refresh as a bad request, unless it uses the header', async () => {
    const form = { grant_type: 'refresh_token', refresh_token: 'token', client_id: 'nobody' }
    const { status, json: answer } = await token(form)
    expect([status, answer]).toMatchObject([400, { error: 'invalid_client' }])
    expect((await token(form, basic('nobody:'))).status).toBe(401)
    expect(oidc.called('getTokens')).toBe(0)
  })

  test.each<[string, object, string]>([
    ['no grant type', { client_id: 'native' }, 'invalid_request'],
    ['an unknown grant type', { ...redeem, grant_type: 'magic' }, 'unsupported_grant_type'],
    ['a member of all objects', { ...redeem, grant_type: 'constructor' }, 'unsupported_grant_type'],
    ['no code', { ...redeem, code: '' }, 'invalid_request'],
    ['no verifier', { ...redeem, code_verifier: '' }, 'invalid_request'],
    ['no refresh token', { grant_type: 'refresh_token', client_id: 'native' }, 'invalid_request'],
    ['NUL', { ...redeem, code: 'a\0b' }, 'invalid_request'],
  ])('refuses %s', async (_, form, error) => {
    const { status, json: answer } = await token(form)
    expect([status, answer]).toEqual([400, { error, error_description: expect.any(String) }])
    expect(oidc.called('getTokens')).toBe(0)
  })

  test.each(['client_id=native&client_id=native', 'code=a&code=b'])(
    'refuses repetitions: %s',
    async (more) => {
      const { status, json: answer } = await oidc.post(
        '/oidc/oauth/token',
        `grant_type=refresh_token&${more}`,
      )
      expect([status, answer]).toMatchObject([400, { error: 'invalid_request' }])
    },
  )

  test('refuses JSON', async () => {
    const { status, json: answer } = await oidc.request('/oidc/oauth/token', { method: 'POST', body: redeem })
    expect([status, answer]).toMatchObject([400, { error: 'invalid_request' }])
  })

  test('passes on errors of the protocol', async () => {
    oidc.answerWith('getTokens', async () => ({ error: { error: 'invalid_grant', description: '' } }))
    const { status, text } = await token(redeem)
    expect([status, text]).toEqual([400, '{"error":"invalid_grant"}'])
  })

  test.each([
    ['UNAVAILABLE', 503, 'temporarily_unavailable'],
    ['SERVER_TOO_MANY_REQUESTS', 429, 'temporarily_unavailable'],
    ['UNHANDLED', 500, 'server_error'],
  ] as const)('answers %s in the form of the protocol', async (code, status, error) => {
    oidc.answerWith('getTokens', fails(code))
    const answer = await token(redeem)
    expect([answer.status, answer.json]).toEqual([status, { error, error_description: expect.any(String) }])
  })

  test('revokes', async () => {
    const { status, headers, text } = await oidc.post('/oidc/revoke', { client_id: 'native', token: 't' })
    expect([status, headers['content-type'], text]).toEqual([200, 'application/json', ''])
    expect((await oidc.post('/oidc/revoke', { client_id: 'nobody', token: 't' })).status).toBe(401)
    expect((await oidc.post('/oidc/revoke', { client_id: 'native' })).status).toBe(400)
  })

  test('never says that a token is active', async () => {
    const { status, json: answer } = await oidc.post('/oidc/oauth/introspect', { token: 't' })
    expect([status, answer]).toEqual([200, { active: false }])
  })
})

test.each([
  ['revoked', 'revokeToken', '/oidc/revoke', { client_id: 'native', token: 't' }],
  ['logged out', 'endSession', '/oidc/end_session', { id_token_hint: 't' }],
] as const)('an API session that is %s is not found in memory any more', async (_, method, path, form) => {
  const { sessions } = oidc.gateway.fakes
  const token = randomUUID()
  const status = async () => (await oidc.request('/edge/client/v1/current-api-session', { token })).status
  sessions.set(token, sessionFor(token))
  expect(await status()).toBe(200)
  oidc.answerWith(method, async () => {
    sessions.delete(token) // the change has not arrived yet
    return { clientId: 'native', error: undefined, position: { timeline: 't1', number: 1000 } }
  })
  await oidc.post(path, form)
  expect(await status()).toBe(401)
})

describe('logging out', () => {
  const end = (members: Record<string, string>) =>
    oidc.request(`/oidc/end_session?${new URLSearchParams(members)}`)

  test('leads to the page, or back to the client', async () => {
    expect((await end({ id_token_hint: 't' })).headers.location).toBe('/oidc/logged-out')
    const target = 'http://localhost:8080/auth/logout'
    const { status, headers } = await end({
      id_token_hint: 't',
      post_logout_redirect_uri: target,
      state: 'x y',
    })
    expect([status, headers.location]).toEqual([302, `${target}?state=x+y`])
    expect((await oidc.post('/oidc/end_session', { id_token_hint: 't' })).status).toBe(302)
    expect(oidc.requestTo('endSession')).toEqual({ idTokenHint: 't', clientId: '' })
  })

  test('refuses addresses that are not registered, before anything ends', async () => {
    const { status, json: answer } = await end({
      id_token_hint: 't',
      post_logout_redirect_uri: 'http://localhost:8080/auth/callback',
    })
    expect([status, answer]).toMatchObject([400, { error: 'invalid_request' }])
    expect(oidc.called('endSession')).toBe(0)
    expect(oidc.gateway.logged.at(-1)).toMatchObject({ setting: 'OVERLAY_OIDC_LOGOUT_REDIRECTS' })
  })

  test('refuses a hint that is missing or wrong', async () => {
    expect((await end({})).status).toBe(400)
    oidc.answerWith('endSession', async () => ({ error: { error: 'invalid_request', description: 'x' } }))
    const { status, json: answer } = await end({ id_token_hint: 't' })
    expect([status, answer]).toEqual([400, { error: 'invalid_request', error_description: 'x' }])
  })

  test('is confirmed in text, and to browsers on a page', async () => {
    const { headers } = await oidc.request('/oidc/logged-out')
    expect(headers['content-type']).toBe('text/plain; charset=utf-8')
    const page = await oidc.request('/oidc/logged-out', { headers: browser })
    expect(page.headers['content-type']).toBe('text/html; charset=utf-8')
  })
})

import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { makeCertificate } from '../../testing/certificates.js'
import type { Answer } from '../../testing/gateway.js'
import {
  authorizeForm,
  authorizeUrl,
  browser,
  type Changes,
  challenge,
  fails,
  ID,
  REDIRECT,
  startOidc,
  type TestOidc,
  withCode,
} from '../../testing/oidc.js'

let oidc: TestOidc
beforeAll(async () => {
  oidc = await startOidc()
})
beforeEach(() => oidc.reset())
afterAll(() => oidc[Symbol.asyncDispose]())

describe('the start of a login', () => {
  test('leads to the page of the requested method', async () => {
    for (const [method, step] of [
      ['', 'username'],
      ['password', 'username'],
      ['cert', 'cert'],
      ['ext-jwt', 'ext-jwt'],
      ['constructor', 'username'],
    ] as const) {
      const { status, headers } = await oidc.request(authorizeUrl({ method }))
      expect([status, headers.location]).toEqual([302, `/oidc/login/${step}?authRequestID=${ID}`])
      expect(headers['cache-control']).toBe('no-store')
    }
  })

  test('prefers a certificate that the client presents', async () => {
    const { keyPem, pem } = await makeCertificate('client')
    const { headers } = await oidc.request(authorizeUrl(), { tls: { key: keyPem, cert: pem } })
    expect(headers.location).toContain('/login/cert')
  })

  test('passes on what the client asked for', async () => {
    await oidc.request(`${authorizeUrl({ nonce: 'n' })}&configTypes=a&configTypes=b`)
    expect(oidc.requestTo('startLogin')).toEqual({
      clientId: 'native',
      redirectUri: REDIRECT,
      scopes: ['openid', 'offline_access'],
      state: 's',
      nonce: 'n',
      codeChallenge: challenge,
      configTypes: ['a', 'b'],
    })
  })

  test('takes a form as well', async () => {
    expect((await oidc.post('/oidc/authorize', authorizeForm())).status).toBe(302)
  })

  test.each<[string, Changes]>([
    ['an unknown client', { client_id: 'nobody' }],
    ['no client', { client_id: undefined }],
    ['a redirect URI that is not registered', { redirect_uri: 'http://evil.example/auth/callback' }],
    ['no redirect URI', { redirect_uri: undefined }],
    ['a redirect URI beyond all lengths', { redirect_uri: `${REDIRECT}?${'x'.repeat(4000)}` }],
  ])('%s is refused without a redirect', async (_, changes) => {
    const { status, headers } = await oidc.request(authorizeUrl(changes))
    expect([status, headers['content-type'], headers.location]).toEqual([
      400,
      'text/plain; charset=utf-8',
      undefined,
    ])
    expect(oidc.called('startLogin')).toBe(0)
  })

  test('an address that is not registered is logged with the setting that lacks it, and the page names both', async () => {
    const uri = 'http://app.example/auth/<b>callback'
    const { text, status } = await oidc.request(authorizeUrl({ redirect_uri: `${uri}?secret=x\n` }), {
      headers: browser,
    })
    const line = oidc.gateway.logged.at(-1) as { readonly requestId: string }
    expect(line).toMatchObject({
      message: 'redirect URI not registered',
      redirectUri: `${uri}?…`,
      setting: 'OVERLAY_OIDC_REDIRECTS',
      clientId: 'native',
    })
    expect(status).toBe(400)
    expect(text).toContain('OVERLAY_OIDC_REDIRECTS')
    expect(text).toContain(line.requestId)
    expect(text).not.toContain('app.example')
  })

  test.each([
    'client_id=openziti',
    `redirect_uri=${encodeURIComponent(REDIRECT)}`,
    'state=s',
    'scope=openid',
  ])('a parameter that is given twice is refused: %s', async (more) => {
    const { status, headers } = await oidc.request(`${authorizeUrl()}&${more}`)
    expect([status, headers.location]).toEqual([400, undefined])
    expect((await oidc.post(`/oidc/authorize?${more}`, authorizeForm())).status).toBe(400)
  })

  test.each<[string, Changes, string]>([
    ['no challenge', { code_challenge: undefined, code_challenge_method: undefined }, 'invalid_request'],
    ['a plain challenge', { code_challenge_method: 'plain' }, 'invalid_request'],
    ['a challenge without its method', { code_challenge_method: undefined }, 'invalid_request'],
    ['a challenge that is no digest', { code_challenge: 'x' }, 'invalid_request'],
    ['another response type', { response_type: 'token' }, 'unauthorized_client'],
    ['no response type', { response_type: undefined }, 'invalid_request'],
    ['no scope', { scope: undefined }, 'invalid_request'],
    ['no openid', { scope: 'profile' }, 'invalid_scope'],
    ['prompt none', { prompt: 'none' }, 'login_required'],
    ['prompt none beside another', { prompt: 'none login' }, 'invalid_request'],
    ['a request object', { request: 'x' }, 'request_not_supported'],
    ['the address of a request object', { request_uri: 'https://x' }, 'request_uri_not_supported'],
    ['another response mode', { response_mode: 'form_post' }, 'invalid_request'],
    ['a state beyond all lengths', { state: 'x'.repeat(3000) }, 'invalid_request'],
  ])('%s goes back to the client', async (_, changes, error) => {
    const { status, headers } = await oidc.request(authorizeUrl(changes))
    const target = new URL(headers.location ?? '')
    expect([status, target.origin + target.pathname]).toEqual([302, REDIRECT])
    expect(target.searchParams.get('error')).toBe(error)
    expect(oidc.called('startLogin')).toBe(0)
  })

  test.each([
    ['one config type', 1, 16 << 10],
    ['the config types together', 32, 512],
  ])('%s may have a limited length', async (_, count, length) => {
    const asked = (size: number): Promise<Answer> => {
      const types = Array.from({ length: count }, (): [string, string] => ['configTypes', 'x'.repeat(size)])
      const form = new URLSearchParams([...Object.entries(authorizeForm()), ...types])
      return oidc.post('/oidc/authorize', form.toString())
    }
    const { headers } = await asked(length + 1)
    expect(headers.location).toMatch(/callback\?error=invalid_request&error_description=configTypes/)
    expect(oidc.called('startLogin')).toBe(0)
    expect((await asked(length)).headers.location).toContain('/oidc/login/')
  })

  test('an error for an implicit response type is in the fragment', async () => {
    const { headers } = await oidc.request(authorizeUrl({ response_type: 'id_token' }))
    expect(headers.location).toMatch(/callback#error=unauthorized_client&/)
  })
})

describe('the callback', () => {
  const callback = `/oidc/authorize/callback?id=${ID}`

  test('takes code and state to the client', async () => {
    const { status, headers } = await oidc.request(callback)
    expect([status, headers.location]).toEqual([302, `${REDIRECT}?code=the-code&state=s+t`])
    expect(headers).toMatchObject({ 'cache-control': 'no-store', 'referrer-policy': 'no-referrer' })
  })

  test('says that an incomplete login is one', async () => {
    oidc.answerWith('finishLogin', async () => ({ login: withCode, code: '' }))
    const { status, headers } = await oidc.request(callback)
    expect(status).toBe(302)
    expect(headers.location).toMatch(/\?error=interaction_required&error_description=[^&]+&state=s\+t$/)
  })

  test('refuses an unknown login, and a missing id', async () => {
    oidc.answerWith('finishLogin', fails('NOT_FOUND'))
    expect((await oidc.request(callback)).status).toBe(400)
    expect((await oidc.request('/oidc/authorize/callback?id=a%20b')).status).toBe(400)
    expect((await oidc.request('/oidc/authorize/callback')).status).toBe(404)
    const page = await oidc.request(callback, { headers: browser })
    expect([page.status, page.headers['content-type']]).toEqual([400, 'text/html; charset=utf-8'])
  })
})

import { createHash } from 'node:crypto'
import { Fault, type LoginState } from '@overlay/rpc'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { accessLog } from '../http/access-log.js'
import { makeCertificate } from '../testing/certificates.js'
import { type RequestOptions, startGateway, type TestGateway } from '../testing/gateway.js'

const ID = '0c7e42c8-4a1b-4b4e-9a34-6f3dd2c1a001'
const REDIRECT = 'http://localhost:8080/auth/callback'
const FORM = 'application/x-www-form-urlencoded'
const browser = { accept: 'text/html,application/xhtml+xml,*/*;q=0.8' }
const challenge = createHash('sha256').update('verifier').digest('base64url')

let gateway: TestGateway
beforeAll(async () => {
  gateway = await startGateway()
})
afterAll(() => gateway[Symbol.asyncDispose]())

const login: LoginState = {
  id: ID,
  clientId: 'native',
  redirectUri: REDIRECT,
  state: 's t',
  isIdentified: true,
  isComplete: true,
  needsCode: false,
  needsEnrollment: false,
  needsToken: false,
  authQueries: Buffer.alloc(0),
}
const totpQuery = { typeId: 'MFA', provider: 'ziti', httpUrl: './authenticate/mfa' }
const withCode = { ...login, isComplete: false, needsCode: true, authQueries: json([totpQuery]) }

function json(value: unknown): Buffer {
  return Buffer.from(JSON.stringify(value))
}

beforeEach(() => {
  const { instead, calls } = gateway.fakes
  calls.splice(0)
  const answers = {
    startLogin: { ...login, isIdentified: false, isComplete: false },
    getLogin: withCode,
    presentCredential: login,
    presentCode: login,
    verifySecondFactor: login,
    enrollSecondFactor: {
      id: 'm1',
      isVerified: false,
      provisioningUrl: 'otpauth://totp/x:y?issuer=x&secret=ABCDEF',
      recoveryCodes: ['AAAAAA', 'BBBBBB'],
      createdAtMs: 0,
      updatedAtMs: 0,
    },
    finishLogin: { login, code: 'the-code' },
    getTokens: { json: json({ access_token: 'a' }), error: undefined },
    revokeToken: {},
    endSession: { clientId: 'native', error: undefined },
  }
  for (const [method, answer] of Object.entries(answers)) instead.set(`oidc.${method}`, async () => answer)
  instead.set('identity.entities.list', async () => ({
    rows: json([
      { name: '<b>company</b>', externalAuthUrl: 'https://idp.example/login' },
      { name: 'old', externalAuthUrl: 'javascript:alert(1)' },
      { name: 'silent' },
    ]),
  }))
})

const answerWith = (method: string, answer: () => Promise<unknown>) =>
  void gateway.fakes.instead.set(`oidc.${method}`, answer)
const fails = (code: ConstructorParameters<typeof Fault>[0]) => async () => {
  throw new Fault(code)
}
const requestTo = (method: string) =>
  gateway.fakes.calls.find((call) => call.method === `oidc.${method}`)?.request

const post = (path: string, form: string | Record<string, string>, options: RequestOptions = {}) =>
  gateway.request(path, {
    method: 'POST',
    text: new URLSearchParams(form).toString(),
    ...options,
    headers: { 'content-type': FORM, ...options.headers },
  })
const request = (path: string, options: RequestOptions = {}) => gateway.request(path, options)

const good = {
  client_id: 'native',
  response_type: 'code',
  scope: 'openid offline_access',
  state: 's',
  redirect_uri: REDIRECT,
  code_challenge: challenge,
  code_challenge_method: 'S256',
}
type Changes = Readonly<Record<string, string | undefined>>
const authorizeUrl = (changes: Changes = {}): string => {
  const members = Object.entries({ ...good, ...changes }).flatMap(([k, v]) =>
    v === undefined ? [] : [[k, v]],
  )
  return `/oidc/authorize?${new URLSearchParams(members as [string, string][])}`
}

describe('the start of a login', () => {
  test('leads to the page of the requested method', async () => {
    for (const [method, step] of [
      ['', 'username'],
      ['password', 'username'],
      ['cert', 'cert'],
      ['ext-jwt', 'ext-jwt'],
      ['constructor', 'username'],
    ] as const) {
      const { status, headers } = await request(authorizeUrl({ method }))
      expect([status, headers.location]).toEqual([302, `/oidc/login/${step}?authRequestID=${ID}`])
      expect(headers['cache-control']).toBe('no-store')
    }
  })

  test('prefers a certificate that the client presents', async () => {
    const { keyPem, pem } = await makeCertificate('client')
    const { headers } = await request(authorizeUrl(), { tls: { key: keyPem, cert: pem } })
    expect(headers.location).toContain('/login/cert')
    expect(requestTo('startLogin')).toMatchObject({ peerCertificates: [expect.any(Buffer)] })
  })

  test('passes on what the client asked for', async () => {
    await request(`${authorizeUrl({ nonce: 'n' })}&configTypes=a&configTypes=b`)
    expect(requestTo('startLogin')).toEqual({
      clientId: 'native',
      redirectUri: REDIRECT,
      scopes: ['openid', 'offline_access'],
      state: 's',
      nonce: 'n',
      codeChallenge: challenge,
      configTypes: ['a', 'b'],
      peerCertificates: [],
    })
  })

  test('takes a form as well', async () => {
    expect((await post('/oidc/authorize', good)).status).toBe(302)
  })

  test.each<[string, Changes]>([
    ['an unknown client', { client_id: 'nobody' }],
    ['no client', { client_id: undefined }],
    ['a redirect URI that is not registered', { redirect_uri: 'http://evil.example/auth/callback' }],
    ['no redirect URI', { redirect_uri: undefined }],
    ['a redirect URI beyond all lengths', { redirect_uri: `${REDIRECT}?${'x'.repeat(4000)}` }],
  ])('%s is refused without a redirect', async (_, changes) => {
    const { status, headers } = await request(authorizeUrl(changes))
    expect([status, headers['content-type'], headers.location]).toEqual([
      400,
      'text/plain; charset=utf-8',
      undefined,
    ])
    expect(gateway.fakes.called('oidc.startLogin')).toBe(0)
  })

  test.each([
    'client_id=openziti',
    `redirect_uri=${encodeURIComponent(REDIRECT)}`,
    'state=s',
    'scope=openid',
  ])('a parameter that is given twice is refused: %s', async (more) => {
    const { status, headers } = await request(`${authorizeUrl()}&${more}`)
    expect([status, headers.location]).toEqual([400, undefined])
    expect((await post(`/oidc/authorize?${more}`, good)).status).toBe(400)
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
    const { status, headers } = await request(authorizeUrl(changes))
    const target = new URL(headers.location ?? '')
    expect([status, target.origin + target.pathname]).toEqual([302, REDIRECT])
    expect(target.searchParams.get('error')).toBe(error)
    expect(gateway.fakes.called('oidc.startLogin')).toBe(0)
  })

  test('an error for an implicit response type is in the fragment', async () => {
    const { headers } = await request(authorizeUrl({ response_type: 'id_token' }))
    expect(headers.location).toMatch(/callback#error=unauthorized_client&/)
  })
})

describe('the callback', () => {
  const callback = `/oidc/authorize/callback?id=${ID}`

  test('takes code and state to the client', async () => {
    const { status, headers } = await request(callback)
    expect([status, headers.location]).toEqual([302, `${REDIRECT}?code=the-code&state=s+t`])
    expect(headers).toMatchObject({ 'cache-control': 'no-store', 'referrer-policy': 'no-referrer' })
  })

  test('says that an incomplete login is one', async () => {
    answerWith('finishLogin', async () => ({ login: withCode, code: '' }))
    const { status, headers } = await request(callback)
    expect(status).toBe(302)
    expect(headers.location).toMatch(/\?error=interaction_required&error_description=[^&]+&state=s\+t$/)
  })

  test('refuses an unknown login, and a missing id', async () => {
    answerWith('finishLogin', fails('NOT_FOUND'))
    expect((await request(callback)).status).toBe(400)
    expect((await request('/oidc/authorize/callback?id=a%20b')).status).toBe(400)
    expect((await request('/oidc/authorize/callback')).status).toBe(404)
    const page = await request(callback, { headers: browser })
    expect([page.status, page.headers['content-type']]).toEqual([400, 'text/html; charset=utf-8'])
  })
})

describe('the login page', () => {
  const page = `/oidc/login/username?authRequestID=${ID}`

  test('names the login in a header and posts it', async () => {
    const { status, headers, text } = await request(page)
    expect([status, headers['content-type'], headers['auth-request-id']]).toEqual([
      200,
      'text/html; charset=utf-8',
      ID,
    ])
    expect(text).toContain(`name="id" value="${ID}"`)
  })

  test.each(['cert', 'ext-jwt'])('of %s is text, except in browsers', async (method) => {
    const path = `/oidc/login/${method}?authRequestID=${ID}`
    const { headers } = await request(path)
    expect([headers['content-type'], headers['auth-request-id']]).toEqual(['text/plain; charset=utf-8', ID])
    const { headers: shown } = await request(path, { headers: browser })
    expect(shown['content-type']).toBe('text/html; charset=utf-8')
  })

  test('runs and loads nothing, stays in its window, and is not kept', async () => {
    const { headers, text } = await request(page, { headers: browser })
    expect(headers).toMatchObject({
      'cache-control': 'no-store',
      'referrer-policy': 'no-referrer',
      'x-frame-options': 'DENY',
      'x-content-type-options': 'nosniff',
    })
    expect(headers['content-security-policy']).toMatch(
      /^default-src 'none'; style-src 'sha256-[^']+'; img-src data:; base-uri 'none'; form-action 'self' openziti: https:\/\/127\.0\.0\.1:\* .*; frame-ancestors 'none'$/,
    )
    expect(text).not.toMatch(/<script|\son[a-z]+=|\ssrc=|@import|url\(/i)
  })

  test('offers the providers of tokens, whose texts cannot become markup', async () => {
    const { text } = await request(page, { headers: browser })
    expect(text).toContain('<a href="https://idp.example/login"')
    expect(text).toContain('&lt;b&gt;company&lt;/b&gt;')
    expect(text).not.toContain('javascript:')
  })

  test('has a label for each field', async () => {
    const { text } = await request(page, { headers: browser })
    const fields = [...text.matchAll(/<(?:input|textarea) id="([^"]+)"/g)].map(([, id]) => id)
    const labels = [...text.matchAll(/<label for="([^"]+)"/g)].map(([, id]) => id)
    expect(fields).toEqual(['username', 'password', 'token'])
    expect(labels).toEqual(fields)
  })

  test.each(['"><script>alert(1)</script>', '<x>', 'a\r\nset-cookie: x=y', 'ü'])(
    'an id that is none is not repeated: %s',
    async (id) => {
      const { status, headers, text } = await request(
        `/oidc/login/username?authRequestID=${encodeURIComponent(id)}`,
      )
      expect([status, headers['auth-request-id'], headers['set-cookie']]).toEqual([200, '', undefined])
      expect(text).not.toContain(id)
    },
  )

  test('gives browsers a secret that comes back with each step', async () => {
    const { headers } = await request(page, { headers: browser })
    const [, cookie = ''] =
      /^(__Host-login=[\w-]{22}); Path=\/; .*Secure; HttpOnly; SameSite=Lax$/.exec(
        headers['set-cookie']?.[0] ?? '',
      ) ?? []
    const [, secret] = cookie.split('=')
    const again = await request(page, { headers: { ...browser, cookie: `a=b; ${cookie}` } })
    expect(again.headers['set-cookie']?.[0]).toContain(`${cookie};`)
    await post('/oidc/login/password', { id: ID, username: 'u', password: 'p' }, { headers: { cookie } })
    await request(`/oidc/authorize/callback?id=${ID}`, { headers: { cookie } })
    expect(requestTo('presentCredential')).toMatchObject({ browser: secret })
    expect(requestTo('finishLogin')).toEqual({ id: ID, browser: secret })
    expect((await request(page)).headers['set-cookie']).toBeUndefined()
  })
})

describe('a credential', () => {
  const credentials = { id: ID, username: 'alice', password: 'secret' }

  test('that completes the login leads to the callback', async () => {
    const { status, headers } = await post('/oidc/login/password', credentials)
    expect([status, headers.location]).toEqual([
      302,
      `https://localhost:1280/oidc/authorize/callback?id=${ID}`,
    ])
  })

  test('arrives from a form, with what the SDK says about itself', async () => {
    const info = { envOsRelease: 'r', envArch: 'a', sdkAppID: 'app', sdkVersion: '1', configTypes: 'all' }
    await post(
      '/oidc/login/username',
      { ...credentials, ...info },
      { headers: { authorization: 'Bearer x.y.z' } },
    )
    expect(requestTo('presentCredential')).toEqual({
      id: ID,
      credential: {
        method: 'password',
        username: 'alice',
        password: 'secret',
        peerCertificates: [],
        bearerTokens: ['x.y.z'],
        configTypes: ['all'],
        envInfo: json({ arch: 'a', osRelease: 'r' }),
        sdkInfo: json({ appId: 'app', version: '1' }),
        ipAddress: '127.0.0.1',
      },
      remoteAddress: expect.stringMatching(/^127\.0\.0\.1:\d+$/),
      browser: '',
    })
  })

  test('arrives as JSON', async () => {
    const body = { ...credentials, configTypes: ['a'], sdkInfo: { appId: 'app' } }
    const { status } = await request('/oidc/login/password', { method: 'POST', body })
    expect(status).toBe(302)
    expect(requestTo('presentCredential')).toMatchObject({
      id: ID,
      credential: { username: 'alice', configTypes: ['a'], sdkInfo: json({ appId: 'app' }) },
    })
  })

  test.each([
    ['a form with a charset', { 'content-type': `${FORM}; charset=UTF-8` }],
    ['any accepted type', { accept: '*/*' }],
    ['JSON', { accept: 'application/json' }],
  ])('works with %s', async (_, headers) => {
    expect((await post('/oidc/login/password', credentials, { headers })).status).toBe(302)
  })

  test('may name its login in the address', async () => {
    await post(`/oidc/login/cert?id=${ID}`, '')
    expect(requestTo('presentCredential')).toMatchObject({ id: ID, credential: { method: 'cert' } })
  })

  test('may be a token from the page', async () => {
    await post('/oidc/login/ext-jwt', { id: ID, token: ' a.b.c\n' })
    expect(requestTo('presentCredential')).toMatchObject({ credential: { bearerTokens: ['a.b.c'] } })
  })

  test.each(['text/plain', 'multipart/form-data; boundary=x', 'application/jsonx'])(
    'is refused in a body of type %s',
    async (type) => {
      const { status, json: answer } = await post('/oidc/login/password', credentials, {
        headers: { 'content-type': type },
      })
      expect([status, answer]).toEqual([415, { code: 'UNSUPPORTED_MEDIA_TYPE', message: expect.any(String) }])
      expect(gateway.fakes.called('oidc.presentCredential')).toBe(0)
    },
  )

  test('is refused if no type is acceptable', async () => {
    const { status } = await post('/oidc/login/password', credentials, { headers: { accept: 'image/png' } })
    expect([status, gateway.fakes.called('oidc.presentCredential')]).toEqual([406, 0])
  })

  test.each(['INVALID_AUTH', 'COULD_NOT_VALIDATE', 'NOT_FOUND'] as const)(
    'that is refused with %s gets one answer',
    async (code) => {
      answerWith('presentCredential', fails(code))
      const { status, headers, text } = await post('/oidc/login/password', credentials)
      expect([status, headers['content-type'], headers.location]).toEqual([
        200,
        'text/html; charset=utf-8',
        undefined,
      ])
      expect(text).toContain('role="alert"')
      expect(text).not.toContain('alice')
      const cert = await post('/oidc/login/cert', { id: ID })
      expect([cert.status, cert.headers['content-type']]).toEqual([401, 'text/plain; charset=utf-8'])
      const page = await post('/oidc/login/cert', { id: ID }, { headers: browser })
      expect([page.status, page.headers['content-type']]).toEqual([401, 'text/html; charset=utf-8'])
    },
  )

  test('for an id that is none is refused alike, without a call', async () => {
    const { status } = await post('/oidc/login/password', { ...credentials, id: "x' or 1" })
    expect([status, gateway.fakes.called('oidc.presentCredential')]).toEqual([200, 0])
  })

  test.each([undefined, browser])('that comes too often must wait', async (headers) => {
    answerWith('presentCredential', fails('SERVER_TOO_MANY_REQUESTS'))
    const answer = await post('/oidc/login/password', credentials, headers ? { headers } : {})
    expect([answer.status, answer.headers['retry-after']]).toEqual([429, expect.any(String)])
  })

  test('is not blamed if a service is away', async () => {
    answerWith('presentCredential', fails('UNAVAILABLE'))
    expect((await post('/oidc/login/password', credentials)).status).toBe(503)
    expect((await post('/oidc/login/password', credentials, { headers: browser })).text).not.toContain(
      '<form',
    )
  })

  test.each([
    ['{', 'no JSON'],
    ['[]', 'a list'],
    ['null', 'null'],
    ['{"id":1}', 'a number'],
    ['{"configTypes":"a"}', 'text for a list'],
    [`${'['.repeat(500)}`, 'deep nesting'],
    ['{"id":"\\u0000"}', 'NUL'],
    ['{"envInfo":{"os":{}}}', 'an object for text'],
  ])('in JSON that has another form is the fault of the client: %s', async (text) => {
    for (const step of ['password', 'totp', 'totp/enroll', 'totp/enroll/verify']) {
      const { status, json: answer } = await post(`/oidc/login/${step}`, '', {
        text,
        headers: { 'content-type': 'application/json' },
      })
      expect(status).toBe(400)
      expect(answer).toEqual({ code: expect.any(String), message: expect.any(String) })
    }
  })
})

describe('the second factor', () => {
  const code = { id: ID, code: '123456' }

  test('is asked for after the first', async () => {
    answerWith('presentCredential', async () => withCode)
    const { status, headers, json: answer } = await post('/oidc/login/password', { id: ID })
    expect([status, headers['totp-required']]).toEqual([200, 'true'])
    const query = { ...totpQuery, typeId: 'TOTP', httpUrl: './oidc/login/totp', isTotpEnrolled: true }
    expect(answer).toEqual({ authQueries: [query] })
    const page = await post('/oidc/login/password', { id: ID }, { headers: browser })
    expect([page.status, page.headers['totp-required']]).toEqual([200, 'true'])
    expect(page.text).toContain('action="/oidc/login/totp"')
  })

  test('is created if it does not exist, with its picture', async () => {
    answerWith('presentCredential', async () => ({ ...withCode, needsEnrollment: true }))
    const page = await post('/oidc/login/password', { id: ID }, { headers: browser })
    expect(page.text).toContain('action="/oidc/login/totp/enroll"')
    const { json: answer } = await post('/oidc/login/password', { id: ID })
    expect(answer).toMatchObject({ authQueries: [{ isTotpEnrolled: false }] })

    const shown = await post('/oidc/login/totp/enroll', { id: ID }, { headers: browser })
    expect(shown.text).toMatch(/<img src="data:image\/png;base64,[^"]+"/)
    for (const text of ['ABCDEF', 'AAAAAA', 'BBBBBB', 'action="/oidc/login/totp/enroll/verify"'])
      expect(shown.text).toContain(text)
    const created = await post('/oidc/login/totp/enroll', { id: ID })
    expect([created.status, created.headers['cache-control']]).toEqual([201, 'no-store'])
    expect(created.json).toMatchObject({ id: 'm1', isVerified: false, recoveryCodes: ['AAAAAA', 'BBBBBB'] })
  })

  test('is not created before the first', async () => {
    answerWith('enrollSecondFactor', fails('NOT_FOUND'))
    expect((await post('/oidc/login/totp/enroll', { id: ID })).status).toBe(401)
    expect((await post('/oidc/login/totp/enroll', {})).status).toBe(401)
  })

  test.each(['totp', 'totp/enroll/verify'])('%s leads on with a right code', async (step) => {
    expect((await post(`/oidc/login/${step}`, code)).status).toBe(302)
    const called = step === 'totp' ? 'presentCode' : 'verifySecondFactor'
    expect(requestTo(called)).toEqual({ ...code, browser: '' })
  })

  test.each(['totp', 'totp/enroll/verify'])('%s refuses a wrong code', async (step) => {
    for (const method of ['presentCode', 'verifySecondFactor']) answerWith(method, fails('MFA_INVALID_TOKEN'))
    for (const form of [code, { id: ID }, { code: '1' }, { ...code, id: 'a b' }]) {
      const { status, json: answer } = await post(`/oidc/login/${step}`, form as Record<string, string>)
      expect([status, answer]).toEqual([400, { code: 'INVALID TOTP CODE', message: expect.any(String) }])
    }
    const page = await post(`/oidc/login/${step}`, code, { headers: browser })
    expect([page.status, page.text.includes(`action="/oidc/login/${step}"`)]).toEqual([200, true])
  })

  test('may be an external token', async () => {
    const query = { typeId: 'EXT-JWT', provider: 'url', httpUrl: 'https://idp.example' }
    const state = { ...login, isComplete: false, needsToken: true, authQueries: json([query]) }
    answerWith('presentCode', async () => state)
    const { status, headers, json: answer } = await post('/oidc/login/totp', code)
    expect([status, headers['totp-required'], answer]).toEqual([200, undefined, { authQueries: [query] }])
    const page = await post('/oidc/login/totp', code, { headers: browser })
    expect(page.text).toContain('href="https://idp.example"')
    expect(page.text).toContain('action="/oidc/login/ext-jwt"')
  })

  test('what is missing can be asked for', async () => {
    const { status, headers } = await request(`/oidc/login/auth-queries?id=${ID}`)
    expect([status, headers['totp-required']]).toEqual([200, 'true'])
    answerWith('getLogin', fails('NOT_FOUND'))
    expect((await request(`/oidc/login/auth-queries?id=${ID}`)).status).toBe(401)
    expect((await request('/oidc/login/auth-queries')).status).toBe(401)
  })
})

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
    post('/oidc/oauth/token', form as Record<string, string>, { headers })

  test('answers what identity issued, and forbids to keep it', async () => {
    const { status, headers, text } = await token({ ...redeem, scope: 'openid  x' })
    expect([status, headers['content-type'], text]).toEqual([200, 'application/json', '{"access_token":"a"}'])
    expect(headers).toMatchObject({ 'cache-control': 'no-store', pragma: 'no-cache' })
    expect(requestTo('getTokens')).toMatchObject({
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
    expect(gateway.fakes.called('oidc.getTokens')).toBe(0)
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
    expect(gateway.fakes.called('oidc.getTokens')).toBe(0)
  })

  test.each(['client_id=native&client_id=native', 'code=a&code=b'])(
    'refuses repetitions: %s',
    async (more) => {
      const { status, json: answer } = await post('/oidc/oauth/token', `grant_type=refresh_token&${more}`)
      expect([status, answer]).toMatchObject([400, { error: 'invalid_request' }])
    },
  )

  test('refuses JSON', async () => {
    const { status, json: answer } = await request('/oidc/oauth/token', { method: 'POST', body: redeem })
    expect([status, answer]).toMatchObject([400, { error: 'invalid_request' }])
  })

  test('passes on errors of the protocol', async () => {
    answerWith('getTokens', async () => ({ error: { error: 'invalid_grant', description: '' } }))
    const { status, text } = await token(redeem)
    expect([status, text]).toEqual([400, '{"error":"invalid_grant"}'])
  })

  test.each([
    ['UNAVAILABLE', 503, 'temporarily_unavailable'],
    ['SERVER_TOO_MANY_REQUESTS', 429, 'temporarily_unavailable'],
    ['UNHANDLED', 500, 'server_error'],
  ] as const)('answers %s in the form of the protocol', async (code, status, error) => {
    answerWith('getTokens', fails(code))
    const answer = await token(redeem)
    expect([answer.status, answer.json]).toEqual([status, { error, error_description: expect.any(String) }])
  })

  test('revokes', async () => {
    const { status, headers, text } = await post('/oidc/revoke', { client_id: 'native', token: 't' })
    expect([status, headers['content-type'], text]).toEqual([200, 'application/json', ''])
    expect((await post('/oidc/revoke', { client_id: 'nobody', token: 't' })).status).toBe(401)
    expect((await post('/oidc/revoke', { client_id: 'native' })).status).toBe(400)
  })

  test('never says that a token is active', async () => {
    const { status, json: answer } = await post('/oidc/oauth/introspect', { token: 't' })
    expect([status, answer]).toEqual([200, { active: false }])
  })
})

describe('logging out', () => {
  const end = (members: Record<string, string>) =>
    request(`/oidc/end_session?${new URLSearchParams(members)}`)

  test('leads to the page, or back to the client', async () => {
    expect((await end({ id_token_hint: 't' })).headers.location).toBe('/oidc/logged-out')
    const target = 'http://localhost:8080/auth/logout'
    const { status, headers } = await end({
      id_token_hint: 't',
      post_logout_redirect_uri: target,
      state: 'x y',
    })
    expect([status, headers.location]).toEqual([302, `${target}?state=x+y`])
    expect((await post('/oidc/end_session', { id_token_hint: 't' })).status).toBe(302)
    expect(requestTo('endSession')).toEqual({ idTokenHint: 't', clientId: '' })
  })

  test('refuses addresses that are not registered, before anything ends', async () => {
    const { status, json: answer } = await end({
      id_token_hint: 't',
      post_logout_redirect_uri: 'http://localhost:8080/auth/callback',
    })
    expect([status, answer]).toMatchObject([400, { error: 'invalid_request' }])
    expect(gateway.fakes.called('oidc.endSession')).toBe(0)
  })

  test('refuses a hint that is missing or wrong', async () => {
    expect((await end({})).status).toBe(400)
    answerWith('endSession', async () => ({ error: { error: 'invalid_request', description: 'x' } }))
    const { status, json: answer } = await end({ id_token_hint: 't' })
    expect([status, answer]).toEqual([400, { error: 'invalid_request', error_description: 'x' }])
  })

  test('is confirmed in text, and to browsers on a page', async () => {
    const { headers } = await request('/oidc/logged-out')
    expect(headers['content-type']).toBe('text/plain; charset=utf-8')
    const page = await request('/oidc/logged-out', { headers: browser })
    expect(page.headers['content-type']).toBe('text/html; charset=utf-8')
  })
})

describe('metadata', () => {
  test('is the same at both addresses, and names only paths that exist', async () => {
    const { headers, text, json: document } = await request('/oidc/.well-known/openid-configuration')
    expect(headers['content-type']).toBe('application/json')
    expect((await request('/.well-known/openid-configuration')).text).toBe(text)
    const { openziti_endpoints: own, ...metadata } = document as Record<string, unknown>
    const urls = [...Object.entries(metadata), ...Object.entries(own as object)]
      .filter(([name, value]) => name !== 'issuer' && String(value).startsWith('https:'))
      .map(([, url]) => new URL(String(url)).pathname)
    expect(urls.length).toBeGreaterThanOrEqual(12)
    for (const path of urls) expect((await request(path, { method: 'PUT' })).status).toBe(405)
  })

  test('has the keys', async () => {
    gateway.fakes.instead.set('pki.getTokenKeys', async () => ({ jwks: Buffer.from('{"keys":[]}') }))
    const { headers, text } = await request('/oidc/keys')
    expect([headers['content-type'], text]).toEqual(['application/json', '{"keys":[]}'])
  })
})

test.each(['/oidc', '/oidc/nothing', '/oidc/login/magic'])('%s does not exist', async (path) => {
  const { status, headers } = await request(path)
  expect([status, headers['content-type']]).toEqual([404, 'text/plain; charset=utf-8'])
  expect((await post(path, { id: ID })).status).toBe(404)
})

test('other origins may use the provider', async () => {
  const origin = { origin: 'https://app.example' }
  const preflight = await request('/oidc/oauth/token', {
    method: 'OPTIONS',
    headers: {
      ...origin,
      'access-control-request-method': 'POST',
      'access-control-request-headers': 'content-type',
    },
  })
  expect(preflight.status).toBe(200)
  const { headers } = await request('/oidc/.well-known/openid-configuration', { headers: origin })
  expect(headers['access-control-allow-origin']).toBe('*')
})

test('a body that is too large is refused before it is read', async () => {
  for (const path of ['/oidc/login/password', '/oidc/oauth/token', '/oidc/authorize'])
    expect((await post(path, { id: 'x'.repeat(100_000) })).status).toBe(400)
})

test('log lines contain no ids of logins, codes, tokens and states', async () => {
  const lines: string[] = []
  const log = accessLog({
    info: (facts) => lines.push(JSON.stringify(facts)),
    error: (facts) => lines.push(JSON.stringify(facts)),
  })
  gateway.accessRecords.splice(0)
  await request(authorizeUrl({ state: 'secret-state' }))
  await request(`/oidc/login/username?authRequestID=${ID}`)
  await post(`/oidc/login/password?id=${ID}`, { username: 'u', password: 'secret-password' })
  await request(`/oidc/authorize/callback?id=${ID}`)
  await request(`/oidc/nothing?id=${ID}`)
  await post('/oidc/oauth/token', { code: 'secret-code' })
  await request('/oidc/end_session?id_token_hint=secret-token')
  for (const record of gateway.accessRecords) log(record)
  expect(lines).toHaveLength(7)
  expect(lines.join('\n')).not.toMatch(new RegExp(`secret-|${ID}`))
})

import { retryAfter } from '@overlay/rpc'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { browser, FORM, fails, ID, json, returning, startOidc, type TestOidc } from '../../testing/oidc.js'

let oidc: TestOidc
beforeAll(async () => {
  oidc = await startOidc()
})
beforeEach(() => oidc.reset())
afterAll(() => oidc[Symbol.asyncDispose]())

describe('the login page', () => {
  const page = `/oidc/login/username?authRequestID=${ID}`

  test('names the login in a header and posts it', async () => {
    const { status, headers, text } = await oidc.request(page)
    expect([status, headers['content-type'], headers['auth-request-id']]).toEqual([
      200,
      'text/html; charset=utf-8',
      ID,
    ])
    expect(text).toContain(`name="id" value="${ID}"`)
  })

  test.each(['cert', 'ext-jwt'])('of %s is text, except in browsers', async (method) => {
    const path = `/oidc/login/${method}?authRequestID=${ID}`
    const { headers } = await oidc.request(path)
    expect([headers['content-type'], headers['auth-request-id']]).toEqual(['text/plain; charset=utf-8', ID])
    const { headers: shown } = await oidc.request(path, { headers: browser })
    expect(shown['content-type']).toBe('text/html; charset=utf-8')
  })

  test('runs and loads nothing, stays in its window, and is not kept', async () => {
    const { headers, text } = await oidc.request(page, { headers: browser })
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
    const { text } = await oidc.request(page, { headers: browser })
    expect(text).toContain('<a href="https://idp.example/login"')
    expect(text).toContain('&lt;b&gt;company&lt;/b&gt;')
    expect(text).not.toContain('javascript:')
  })

  test('has a label for each field', async () => {
    const { text } = await oidc.request(page, { headers: browser })
    const fields = [...text.matchAll(/<(?:input|textarea) id="([^"]+)"/g)].map(([, id]) => id)
    const labels = [...text.matchAll(/<label for="([^"]+)"/g)].map(([, id]) => id)
    expect(fields).toEqual(['username', 'password', 'token'])
    expect(labels).toEqual(fields)
  })

  test.each(['"><script>alert(1)</script>', '<x>', 'a\r\nset-cookie: x=y', 'ü'])(
    'an id that is none is not repeated: %s',
    async (id) => {
      const { status, headers, text } = await oidc.request(
        `/oidc/login/username?authRequestID=${encodeURIComponent(id)}`,
      )
      expect([status, headers['auth-request-id'], headers['set-cookie']]).toEqual([200, '', undefined])
      expect(text).not.toContain(id)
    },
  )

  test('gives browsers a secret that comes back with each step', async () => {
    const { headers } = await oidc.request(page, { headers: browser })
    const [, cookie = ''] =
      /^(__Host-login=[\w-]{22}); Path=\/; .*Secure; HttpOnly; SameSite=Lax$/.exec(
        headers['set-cookie']?.[0] ?? '',
      ) ?? []
    const [, secret] = cookie.split('=')
    const again = await oidc.request(page, { headers: { ...browser, cookie: `a=b; ${cookie}` } })
    expect(again.headers['set-cookie']?.[0]).toContain(`${cookie};`)
    await oidc.post('/oidc/login/password', { id: ID, username: 'u', password: 'p' }, { headers: { cookie } })
    await oidc.request(`/oidc/authorize/callback?id=${ID}`, { headers: { cookie } })
    expect(oidc.requestTo('presentCredential')).toMatchObject({ browser: secret })
    expect(oidc.requestTo('finishLogin')).toEqual({ id: ID, browser: secret })
    expect((await oidc.request(page)).headers['set-cookie']).toBeUndefined()
  })
})

describe('a credential', () => {
  const credentials = { id: ID, username: 'alice', password: 'secret' }

  test('that completes the login leads to the callback', async () => {
    const { status, headers } = await oidc.post('/oidc/login/password', credentials)
    expect([status, headers.location]).toEqual([
      302,
      `https://localhost:1280/oidc/authorize/callback?id=${ID}`,
    ])
  })

  test('arrives from a form, with what the SDK says about itself', async () => {
    const info = { envOsRelease: 'r', envArch: 'a', sdkAppID: 'app', sdkVersion: '1', configTypes: 'all' }
    await oidc.post(
      '/oidc/login/username',
      { ...credentials, ...info },
      { headers: { authorization: 'Bearer x.y.z' } },
    )
    expect(oidc.requestTo('presentCredential')).toEqual({
      id: ID,
      credential: {
        method: 'password',
        username: 'alice',
        password: 'secret',
        peerCertificates: [],
        isLeafAlone: false,
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
    const { status } = await oidc.request('/oidc/login/password', { method: 'POST', body })
    expect(status).toBe(302)
    expect(oidc.requestTo('presentCredential')).toMatchObject({
      id: ID,
      credential: { username: 'alice', configTypes: ['a'], sdkInfo: json({ appId: 'app' }) },
    })
  })

  test.each([
    ['a form with a charset', { 'content-type': `${FORM}; charset=UTF-8` }],
    ['any accepted type', { accept: '*/*' }],
    ['JSON', { accept: 'application/json' }],
  ])('works with %s', async (_, headers) => {
    expect((await oidc.post('/oidc/login/password', credentials, { headers })).status).toBe(302)
  })

  test('may name its login in the address', async () => {
    await oidc.post(`/oidc/login/cert?id=${ID}`, '')
    expect(oidc.requestTo('presentCredential')).toMatchObject({ id: ID, credential: { method: 'cert' } })
  })

  test('may be a token from the page', async () => {
    await oidc.post('/oidc/login/ext-jwt', { id: ID, token: ' a.b.c\n' })
    expect(oidc.requestTo('presentCredential')).toMatchObject({ credential: { bearerTokens: ['a.b.c'] } })
  })

  test.each(['text/plain', 'multipart/form-data; boundary=x', 'application/jsonx'])(
    'is refused in a body of type %s',
    async (type) => {
      const { status, json: answer } = await oidc.post('/oidc/login/password', credentials, {
        headers: { 'content-type': type },
      })
      expect([status, answer]).toEqual([415, { code: 'UNSUPPORTED_MEDIA_TYPE', message: expect.any(String) }])
      expect(oidc.called('presentCredential')).toBe(0)
    },
  )

  test('is refused in a browser without the cookie of the page', async () => {
    const { status, headers, text } = await oidc.post('/oidc/login/password', credentials, {
      headers: browser,
    })
    expect([status, oidc.called('presentCredential')]).toEqual([400, 0])
    expect(headers['set-cookie']?.[0]).toContain('__Host-login=')
    expect(text).toContain('role="alert"')
  })

  test('is refused if no type is acceptable', async () => {
    const { status } = await oidc.post('/oidc/login/password', credentials, {
      headers: { accept: 'image/png' },
    })
    expect([status, oidc.called('presentCredential')]).toEqual([406, 0])
  })

  test.each(['INVALID_AUTH', 'COULD_NOT_VALIDATE', 'NOT_FOUND'] as const)(
    'that is refused with %s gets one answer',
    async (code) => {
      oidc.answerWith('presentCredential', fails(code))
      const { status, headers, text } = await oidc.post('/oidc/login/password', credentials)
      expect([status, headers['content-type'], headers.location]).toEqual([
        200,
        'text/html; charset=utf-8',
        undefined,
      ])
      expect(text).toContain('role="alert"')
      expect(text).not.toContain('alice')
      const cert = await oidc.post('/oidc/login/cert', { id: ID })
      expect([cert.status, cert.headers['content-type']]).toEqual([401, 'text/plain; charset=utf-8'])
      const page = await oidc.post('/oidc/login/cert', { id: ID }, { headers: returning })
      expect([page.status, page.headers['content-type']]).toEqual([401, 'text/html; charset=utf-8'])
    },
  )

  test('for an id that is none is refused alike, without a call', async () => {
    const { status } = await oidc.post('/oidc/login/password', { ...credentials, id: "x' or 1" })
    expect([status, oidc.called('presentCredential')]).toEqual([200, 0])
  })

  test.each([undefined, returning])('that comes too often must wait', async (headers) => {
    oidc.answerWith('presentCredential', fails('SERVER_TOO_MANY_REQUESTS'))
    const answer = await oidc.post('/oidc/login/password', credentials, headers ? { headers } : {})
    expect([answer.status, answer.headers['retry-after']]).toEqual([429, expect.any(String)])
  })

  test.each([
    [1, '1 second,'],
    [57, '57 seconds,'],
    [601, '11 minutes,'],
  ])('that must wait %d s says how long to a browser', async (seconds, wait) => {
    oidc.answerWith('presentCredential', async () => {
      throw retryAfter(seconds)
    })
    const { text } = await oidc.post('/oidc/login/password', credentials, { headers: returning })
    expect(text).toContain(`Wait ${wait}`)
  })

  test('is not blamed if a service is away', async () => {
    oidc.answerWith('presentCredential', fails('UNAVAILABLE'))
    expect((await oidc.post('/oidc/login/password', credentials)).status).toBe(503)
    expect((await oidc.post('/oidc/login/password', credentials, { headers: returning })).text).not.toContain(
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
      const { status, json: answer } = await oidc.post(`/oidc/login/${step}`, '', {
        text,
        headers: { 'content-type': 'application/json' },
      })
      expect(status).toBe(400)
      expect(answer).toEqual({ code: expect.any(String), message: expect.any(String) })
    }
  })
})

describe('a page of another site', () => {
  const cookie = `__Host-login=${'a'.repeat(22)}`
  const present = async (headers: Readonly<Record<string, string>>): Promise<[number, number]> => {
    oidc.reset()
    const { status } = await oidc.post(
      '/oidc/login/cert',
      { id: ID },
      { headers: { accept: '*/*', ...headers } },
    )
    return [status, oidc.called('presentCredential')]
  }

  test.each([
    { 'sec-fetch-site': 'cross-site', origin: 'https://evil.example' },
    { 'sec-fetch-site': 'same-site', origin: 'null' },
    { 'sec-fetch-site': 'cross-site' },
    { origin: 'https://evil.example' },
    { origin: 'null' },
  ])('cannot present the certificate of its visitor: %j', async (headers) => {
    expect(await present(headers)).toEqual([400, 0])
  })

  test('differs between the login page and programs', async () => {
    expect(await present({})).toEqual([302, 1])
    expect(await present({ 'sec-fetch-site': 'same-origin', origin: 'null' })).toEqual([302, 1])
    expect(await present({ origin: 'null', cookie })).toEqual([302, 1])
  })
})

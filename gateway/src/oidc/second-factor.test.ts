import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import {
  fails,
  ID,
  json,
  login,
  returning,
  startOidc,
  type TestOidc,
  totpQuery,
  withCode,
} from '../../testing/oidc.js'

let oidc: TestOidc
beforeAll(async () => {
  oidc = await startOidc()
})
beforeEach(() => oidc.reset())
afterAll(() => oidc[Symbol.asyncDispose]())

describe('the second factor', () => {
  const code = { id: ID, code: '123456' }

  test('is asked for after the first', async () => {
    oidc.answerWith('presentCredential', async () => withCode)
    const { status, headers, json: answer } = await oidc.post('/oidc/login/password', { id: ID })
    expect([status, headers['totp-required']]).toEqual([200, 'true'])
    const query = { ...totpQuery, typeId: 'TOTP', httpUrl: './oidc/login/totp', isTotpEnrolled: true }
    expect(answer).toEqual({ authQueries: [query] })
    const page = await oidc.post('/oidc/login/password', { id: ID }, { headers: returning })
    expect([page.status, page.headers['totp-required']]).toEqual([200, 'true'])
    expect(page.text).toContain('action="/oidc/login/totp"')
  })

  test('is created if it does not exist, with its picture', async () => {
    oidc.answerWith('presentCredential', async () => ({ ...withCode, needsEnrollment: true }))
    const page = await oidc.post('/oidc/login/password', { id: ID }, { headers: returning })
    expect(page.text).toContain('action="/oidc/login/totp/enroll"')
    const { json: answer } = await oidc.post('/oidc/login/password', { id: ID })
    expect(answer).toMatchObject({ authQueries: [{ isTotpEnrolled: false }] })

    const shown = await oidc.post('/oidc/login/totp/enroll', { id: ID }, { headers: returning })
    expect(shown.text).toMatch(/<img src="data:image\/png;base64,[^"]+"/)
    for (const text of ['ABCDEF', 'AAAAAA', 'BBBBBB', 'action="/oidc/login/totp/enroll/verify"'])
      expect(shown.text).toContain(text)
    const created = await oidc.post('/oidc/login/totp/enroll', { id: ID })
    expect([created.status, created.headers['cache-control']]).toEqual([201, 'no-store'])
    expect(created.json).toMatchObject({ id: 'm1', isVerified: false, recoveryCodes: ['AAAAAA', 'BBBBBB'] })
  })

  test('is not created before the first', async () => {
    oidc.answerWith('enrollSecondFactor', fails('NOT_FOUND'))
    expect((await oidc.post('/oidc/login/totp/enroll', { id: ID })).status).toBe(401)
    expect((await oidc.post('/oidc/login/totp/enroll', {})).status).toBe(401)
  })

  test.each(['totp', 'totp/enroll/verify'])('%s leads on with a right code', async (step) => {
    expect((await oidc.post(`/oidc/login/${step}`, code)).status).toBe(302)
    const called = step === 'totp' ? 'presentCode' : 'verifySecondFactor'
    expect(oidc.requestTo(called)).toEqual({ ...code, browser: '' })
  })

  test.each(['totp', 'totp/enroll/verify'])('%s refuses a wrong code', async (step) => {
    for (const method of ['presentCode', 'verifySecondFactor'] as const)
      oidc.answerWith(method, fails('MFA_INVALID_TOKEN'))
    for (const form of [code, { id: ID }, { code: '1' }, { ...code, id: 'a b' }]) {
      const { status, json: answer } = await oidc.post(`/oidc/login/${step}`, form as Record<string, string>)
      expect([status, answer]).toEqual([400, { code: 'INVALID TOTP CODE', message: expect.any(String) }])
    }
    const page = await oidc.post(`/oidc/login/${step}`, code, { headers: returning })
    expect([page.status, page.text.includes(`action="/oidc/login/${step}"`)]).toEqual([200, true])
  })

  test('may be an external token', async () => {
    const query = { typeId: 'EXT-JWT', provider: 'url', httpUrl: 'https://idp.example' }
    const state = { ...login, isComplete: false, needsToken: true, authQueries: json([query]) }
    oidc.answerWith('presentCode', async () => state)
    const { status, headers, json: answer } = await oidc.post('/oidc/login/totp', code)
    expect([status, headers['totp-required'], answer]).toEqual([200, undefined, { authQueries: [query] }])
    const page = await oidc.post('/oidc/login/totp', code, { headers: returning })
    expect(page.text).toContain('href="https://idp.example"')
    expect(page.text).toContain('action="/oidc/login/ext-jwt"')
  })

  test('what is missing can be asked for', async () => {
    const { status, headers } = await oidc.request(`/oidc/login/auth-queries?id=${ID}`)
    expect([status, headers['totp-required']]).toEqual([200, 'true'])
    oidc.answerWith('getLogin', fails('NOT_FOUND'))
    expect((await oidc.request(`/oidc/login/auth-queries?id=${ID}`)).status).toBe(401)
    expect((await oidc.request('/oidc/login/auth-queries')).status).toBe(401)
  })
})

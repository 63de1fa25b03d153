import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { readdir, readFile } from 'node:fs/promises'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import * as client from 'openid-client'
import { type Browser, chromium, type Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Fixture, password, startFixture } from '../fixture.js'
import { type OpenIdClient, type OpenIdLogin, openIdClient, startLogin } from '../open-id.js'
import { totp } from '../totp.js'

const executablePath = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].find(
  (path) => existsSync(path),
)
if (!executablePath && process.env.CI === 'true') throw new Error('there is no Chromium')

let fixture: Fixture
let openId: OpenIdClient
beforeAll(async () => {
  fixture = await startFixture({ gateways: 2 })
  openId = await openIdClient(fixture.server)
})
afterAll(() => fixture[Symbol.asyncDispose]())

const locationOf = (response: Response): string => response.headers.get('location') ?? ''

async function post(path: string, form: Record<string, string>): Promise<Response> {
  const [address] = fixture.server.addresses
  const headers = { 'content-type': 'application/x-www-form-urlencoded' }
  const body = new URLSearchParams(form).toString()
  return openId.fetch(`https://${address}${path}`, { method: 'POST', headers, body, redirect: 'manual' })
}

/** Logs in as a program does, without a browser. */
async function logIn(username: string) {
  const login = await startLogin(openId, 'http://localhost:8080/auth/callback')
  const { origin } = new URL(login.url)
  const step = locationOf(await openId.fetch(login.url))
  const id = new URL(step, origin).searchParams.get('authRequestID') ?? ''
  const page = await openId.fetch(origin + step)
  expect(page.headers.get('auth-request-id')).toBe(id)
  const callback = locationOf(await post('/oidc/login/password', { id, username, password }))
  return login.redeem(locationOf(await openId.fetch(callback)))
}

describe('a third-party client, through two gateways in turn,', () => {
  test('logs in, renews its tokens, and logs out', async () => {
    const { username, id } = await fixture.createUser()
    const { config, gateways } = openId
    const tokens = await logIn(username)
    expect(tokens.claims()).toMatchObject({ sub: id, aud: ['native'], amr: ['password'] })

    const who = await client.fetchUserInfo(config, tokens.access_token, id)
    expect(who).toEqual({ sub: id, name: username })

    const renewed = await client.refreshTokenGrant(config, tokens.refresh_token ?? '')
    expect(renewed.claims()?.sub).toBe(id)
    await expect(client.refreshTokenGrant(config, tokens.refresh_token ?? '')).rejects.toMatchObject({
      error: 'invalid_grant',
    })

    const hint = {
      id_token_hint: renewed.id_token ?? '',
      post_logout_redirect_uri: 'http://localhost:1/auth/logout',
    }
    const end = await openId.fetch(client.buildEndSessionUrl(config, { ...hint, state: 'x' }).href)
    expect([end.status, locationOf(end)]).toEqual([302, 'http://localhost:1/auth/logout?state=x'])
    expect((await openId.fetch(client.buildEndSessionUrl(config, hint).href)).status).toBe(302)
    await expect(client.refreshTokenGrant(config, renewed.refresh_token ?? '')).rejects.toMatchObject({
      error: 'invalid_grant',
    })
    await expect(client.fetchUserInfo(config, renewed.access_token, id)).rejects.toMatchObject({
      status: 401,
    })
    expect(gateways.size).toBe(2)
  })

  test('revokes what it got', async () => {
    const { username } = await fixture.createUser()
    const tokens = await logIn(username)
    await client.tokenRevocation(openId.config, tokens.refresh_token ?? '')
    await client.tokenRevocation(openId.config, tokens.refresh_token ?? '')
    await expect(client.refreshTokenGrant(openId.config, tokens.refresh_token ?? '')).rejects.toMatchObject({
      error: 'invalid_grant',
    })
  })
})

describe.skipIf(!executablePath)('the login page, in a browser without scripts,', () => {
  let browser: Browser
  /** The client to which the provider leads back. */
  let application: Server
  let redirectUri = ''
  beforeAll(async () => {
    browser = await chromium.launch({ executablePath: executablePath ?? '', args: ['--no-sandbox'] })
    application = createServer((_, response) => response.end('signed in')).listen(0, '127.0.0.1')
    await once(application, 'listening')
    redirectUri = `http://127.0.0.1:${(application.address() as AddressInfo).port}/auth/callback`
  })
  afterAll(async () => {
    await browser?.close()
    application?.close()
  })

  const newContext = (certificate?: { readonly cert: string; readonly key: string }) =>
    browser.newContext({
      ignoreHTTPSErrors: true,
      javaScriptEnabled: false,
      ...(certificate && {
        clientCertificates: [
          {
            origin: `https://${fixture.server.addresses[0]}`,
            cert: Buffer.from(certificate.cert),
            key: Buffer.from(certificate.key),
          },
        ],
      }),
    })

  /** Runs the steps on the first page, then redeems the code. */
  async function logIn(
    steps: (page: Page) => Promise<void>,
    certificate?: { readonly cert: string; readonly key: string },
  ) {
    const context = await newContext(certificate)
    try {
      const page = await context.newPage()
      const login = await startLogin(openId, redirectUri)
      await page.goto(login.url)
      await steps(page)
      return await redeem(page, login)
    } finally {
      await context.close()
    }
  }

  async function redeem(page: Page, login: OpenIdLogin) {
    await expect.poll(() => page.url(), { timeout: 30_000 }).toContain(`${redirectUri}?code=`)
    expect(await page.textContent('body')).toBe('signed in')
    return login.redeem(page.url())
  }

  async function enterPassword(page: Page, username: string, secret = password): Promise<void> {
    await page.getByLabel('User name').fill(username)
    await page.getByLabel('Password').fill(secret)
    await page.getByRole('button', { name: 'Sign in', exact: true }).click()
  }

  test('takes a password', async () => {
    const { id, username } = await fixture.createUser()
    const tokens = await logIn(async (page) => {
      await enterPassword(page, username, 'wrong password')
      await page.getByRole('alert').waitFor()
      await enterPassword(page, username)
    })
    expect(tokens.claims()).toMatchObject({ sub: id, amr: ['password'] })
  })

  test('takes the certificate of the browser', async () => {
    const { id, certificate } = await fixture.admin.enroll({ name: fixture.newName() })
    const tokens = await logIn(
      (page) => page.getByRole('button', { name: 'Sign in with a certificate' }).click(),
      certificate,
    )
    expect(tokens.claims()).toMatchObject({ sub: id, amr: ['cert'] })
  })

  test('sets up a second factor that the policy demands, and asks for its code from then on', async () => {
    const authPolicyId = await fixture.makeAuthPolicy({}, { secondary: { requireTotp: true } })
    const { id, username } = await fixture.createUser({ authPolicyId })
    let provisioningUrl = ''
    let recoveryCode = ''
    const enrolled = await logIn(async (page) => {
      await enterPassword(page, username)
      await page.getByRole('button', { name: 'Set up an authenticator app' }).click()
      const secret = await page.locator('li code').first().textContent()
      provisioningUrl = `otpauth://totp/x?secret=${secret}`
      recoveryCode = (await page.locator('.codes code').first().textContent()) ?? ''
      expect(await page.getByAltText('QR code').count()).toBe(1)
      await page.getByLabel('Code').fill(totp(provisioningUrl))
      await page.getByRole('button', { name: 'Continue' }).click()
    })
    expect(enrolled.claims()).toMatchObject({ sub: id, amr: ['password', 'totp'] })

    const tokens = await logIn(async (page) => {
      await enterPassword(page, username)
      await page.getByLabel('Code').fill('000')
      await page.getByRole('button', { name: 'Continue' }).click()
      await page.getByRole('alert').waitFor()
      await page.getByLabel('Code').fill(recoveryCode)
      await page.getByRole('button', { name: 'Continue' }).click()
    })
    expect(tokens.claims()).toMatchObject({ sub: id, amr: ['password', 'totp'] })
  })

  test('binds a login to the browser that has passed its first step', async () => {
    const { username } = await fixture.createUser()
    const context = await newContext()
    const login = await startLogin(openId, redirectUri)
    const page = await context.newPage()
    await page.goto(login.url)
    const id = new URL(page.url()).searchParams.get('authRequestID') ?? ''
    const form = { id, username, password }
    const { origin } = new URL(login.url)
    const first = await context.request.post(`${origin}/oidc/login/password`, { form, maxRedirects: 0 })
    await context.close()
    expect(first.status()).toBe(302)
    const theft = await openId.fetch(`${origin}/oidc/authorize/callback?id=${id}`)
    expect([theft.status, theft.headers.get('location')]).toEqual([400, null])
  })

  test('leaves no secrets in the logs', async () => {
    const { username } = await fixture.createUser()
    const seen: string[] = []
    await logIn(async (page) => {
      seen.push(new URL(page.url()).searchParams.get('authRequestID') ?? '')
      page.on('request', (request) => {
        for (const name of ['code', 'state', 'id'])
          seen.push(new URL(request.url()).searchParams.get(name) ?? '')
      })
      await enterPassword(page, username)
    })
    const secrets = seen.filter((text) => text !== '')
    expect(secrets.length).toBeGreaterThanOrEqual(4)
    const files = (await readdir(fixture.home)).filter((file) => file.endsWith('.log'))
    const logs = await Promise.all(files.map((file) => readFile(join(fixture.home, file), 'utf8')))
    const lines = logs.join('\n')
    expect(lines).toContain('GET /oidc/authorize/callback')
    expect(secrets.filter((secret) => lines.includes(secret))).toEqual([])
  })
})

import { existsSync } from 'node:fs'
import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Admin } from '../admin.js'
import { type Client, openClient, type Server } from '../client.js'
import { type Network, startNetwork } from '../network.js'
import { totp } from '../totp.js'

const executablePath = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].find(
  (path) => existsSync(path),
)
if (!executablePath && process.env.CI === 'true') throw new Error('there is no Chromium')

/** Where to save the picture of the documents. Absent: nowhere. */
const picture = process.env.STATUS_PICTURE

const password = 'correct horse'

let network: Network
let server: Server
let admin: Admin
let anonymous: Client
let count = 0
beforeAll(async () => {
  network = await startNetwork({ policies: 2 })
  server = { addresses: [network.address], caPem: network.caPem }
  admin = await network.admin()
  anonymous = openClient(server, '/edge/management/v1')
})
afterAll(() => network[Symbol.asyncDispose]())

/** Creates an identity with a password, and returns its name. */
async function createUser(isAdmin: boolean): Promise<string> {
  const username = `user-${count++}`
  const identityId = await admin.create('identities', { name: username, type: 'Default', isAdmin })
  await admin.create('authenticators', { method: 'updb', identityId, username, password })
  return username
}

const pidOf = (name: string): number => network.processes.get(name)?.pid() ?? 0

test('a program gets the status with the session of an administrator', async () => {
  const programs = openClient(server, '')
  expect((await programs.call('GET', '/status')).status).toBe(401)
  const { token } = await anonymous.request<{ token: string }>('POST', '/authenticate?method=password', {
    username: 'admin',
    password,
  })
  programs.use(token)
  const { replicas } = await programs.request<{ replicas: { service: string; answers: boolean }[] }>(
    'GET',
    '/status',
  )
  const services = ['gateway', 'identity', 'pki', 'policy', 'policy', 'sessions']
  expect(replicas.map(({ service, answers }) => [service, answers])).toEqual(
    services.map((service) => [service, true]),
  )
})

describe.skipIf(!executablePath)('the status page, in a browser without scripts,', () => {
  let browser: Browser
  let context: BrowserContext
  let page: Page
  beforeAll(async () => {
    browser = await chromium.launch({ executablePath: executablePath ?? '', args: ['--no-sandbox'] })
    context = await newContext()
    page = await context.newPage()
  })
  afterAll(() => browser?.close())

  const newContext = (certificate?: { readonly cert: string; readonly key: string }) =>
    browser.newContext({
      ignoreHTTPSErrors: true,
      javaScriptEnabled: false,
      ...(certificate && {
        clientCertificates: [
          {
            origin: `https://${network.address}`,
            cert: Buffer.from(certificate.cert),
            key: Buffer.from(certificate.key),
          },
        ],
      }),
    })

  const open = (on: Page) => on.goto(`https://${network.address}/status`)
  const title = (on: Page) => on.getByRole('heading', { level: 1 })
  const shown = 'Status of the controller'

  async function enterPassword(on: Page, username: string, secret = password): Promise<void> {
    await on.getByLabel('User name').fill(username)
    await on.getByLabel('Password').fill(secret)
    await on.getByRole('button', { name: 'Sign in', exact: true }).click()
  }

  /** The cells of each row of a section. */
  async function rowsOf(section: string): Promise<string[][]> {
    const rows = await page.getByRole('region', { name: section }).locator('tbody tr').all()
    return Promise.all(rows.map((row) => row.locator('td').allInnerTexts()))
  }

  async function attention(): Promise<string> {
    return (await page.locator('.box').allInnerTexts()).join('\n')
  }

  /** Runs `steps` in a browser of its own. */
  async function elsewhere(
    steps: (page: Page) => Promise<void>,
    certificate?: { readonly cert: string; readonly key: string },
  ): Promise<void> {
    const context = await newContext(certificate)
    try {
      const page = await context.newPage()
      await open(page)
      await steps(page)
    } finally {
      await context.close()
    }
  }

  test('takes the password of an administrator, and keeps its session to itself', async () => {
    await page.goto(`https://${network.address}/`)
    await page.getByRole('link', { name: 'Status' }).click()
    await enterPassword(page, 'admin', 'wrong password')
    expect(await page.getByRole('alert').textContent()).toContain('Sign-in failed')
    await enterPassword(page, 'admin')
    expect(await title(page).textContent()).toBe(shown)
    expect(await context.cookies()).toEqual([
      expect.objectContaining({ path: '/status', httpOnly: true, secure: true, sameSite: 'Strict' }),
    ])
  })

  test('shows each process, and how far it is', async () => {
    const replicas = await rowsOf('Replicas')
    expect(replicas.map(([service, , , state]) => [service, state])).toEqual(
      ['gateway', 'identity', 'pki', 'policy', 'policy', 'sessions'].map((service) => [service, 'answers']),
    )
    for (const name of ['gateway', 'identity', 'pki', 'policy-1', 'policy-2', 'sessions'])
      expect(replicas.map(([, process]) => process?.split('/')[1])).toContain(String(pidOf(name)))
    await admin.create('identities', { name: `user-${count++}`, type: 'Default', isAdmin: false })
    await expect
      .poll(async () => {
        await open(page)
        const rows = (await rowsOf('Positions')).filter(([, , of]) => of?.startsWith('identity'))
        const [positions, behind] = [rows.map((row) => Number(row[3])), rows.map((row) => row[4])]
        return [new Set(positions).size, Math.min(...positions) > 0, rows.length, behind.slice(1)]
      })
      .toEqual([1, true, 6, ['0', '0', '0', '0', '0']])
    expect(await rowsOf('Queues')).toContainEqual(
      expect.arrayContaining(['identity', 'password hashes', 'never']),
    )
    const certificates = await rowsOf('Certificates')
    for (const name of ['root, active', 'server, active', 'policy, for other processes'])
      expect(Number(certificates.find(([other]) => other === name)?.[1])).toBeGreaterThan(5)
    const [[service, , routers] = []] = await rowsOf('Routers')
    expect([service, routers]).toEqual(['sessions', '0'])
    expect(await attention()).toBe('Nothing needs attention.')
  })

  test('shows a refused login with its reason', async () => {
    await open(page)
    const refusals = await rowsOf('Refusals')
    expect(refusals).toContainEqual(
      expect.arrayContaining(['identity', 'login refused', 'wrong password', '127.0.0.1']),
    )
    expect(refusals.join()).toContain('identityName: ')
  })

  test('shows a replica that hangs, then the request that was slow because of it', async () => {
    const pid = pidOf('pki')
    process.kill(pid, 'SIGSTOP')
    const slow = admin.call('GET', '/cas')
    try {
      await open(page)
      expect(await attention()).toMatch(/Critical: pki at \S+ does not answer\./)
      expect(await rowsOf('Replicas')).toContainEqual(expect.arrayContaining(['pki', 'does not answer']))
    } finally {
      process.kill(pid, 'SIGCONT')
    }
    expect((await slow).status).toBe(200)
    await open(page)
    expect(await rowsOf('Slow requests')).toContainEqual(
      expect.arrayContaining(['gateway', 'management GET /cas', '200']),
    )
  })

  test('shows by itself that a replica was killed', async () => {
    await open(page)
    process.kill(pidOf('policy-2'), 'SIGKILL')
    await network.processes.get('policy-2')?.stop()
    await expect.poll(attention).toMatch(/policy at \S+policy-2\.sock cannot be reached/)
    if (!picture) return
    await page.setViewportSize({ width: 1280, height: 1000 })
    await page.screenshot({ path: picture })
  })

  test('fits a phone', async () => {
    await page.setViewportSize({ width: 390, height: 800 })
    await open(page)
    for (const name of ['Replicas', 'Refusals'])
      expect((await page.getByRole('region', { name }).boundingBox())?.width).toBeLessThanOrEqual(390)
  })

  test('ends its session when the administrator signs out', async () => {
    const [cookie] = await context.cookies()
    await page.getByRole('button', { name: 'Sign out' }).click()
    expect(await title(page).textContent()).toBe('Status: sign in')
    expect(await context.cookies()).toEqual([])
    const used = await anonymous.call('GET', '/current-api-session', undefined, {
      'zt-session': cookie?.value ?? '',
    })
    expect(used.status).toBe(401)
  })

  test('takes the certificate of the browser', async () => {
    const { id, certificate } = await admin.enroll({ name: `user-${count++}` })
    await elsewhere(async (page) => {
      await page.getByRole('button', { name: 'Sign in with a certificate' }).click()
      expect(await page.getByRole('alert').textContent()).toContain('is not an administrator')
    }, certificate)
    await admin.request('PATCH', `/identities/${id}`, { isAdmin: true })
    await elsewhere(async (page) => {
      await page.getByRole('button', { name: 'Sign in with a certificate' }).click()
      expect(await title(page).textContent()).toBe(shown)
    }, certificate)
  })

  test('asks for the second factor of an administrator', async () => {
    const username = await createUser(true)
    const client = openClient(server, '/edge/management/v1')
    const { token } = await client.request<{ token: string }>('POST', '/authenticate?method=password', {
      username,
      password,
    })
    client.use(token)
    await client.request('POST', '/current-identity/mfa')
    const factor = await client.request<{ provisioningUrl: string; recoveryCodes: string[] }>(
      'GET',
      '/current-identity/mfa',
    )
    await client.request('POST', '/current-identity/mfa/verify', { code: totp(factor.provisioningUrl) })
    await elsewhere(async (page) => {
      await enterPassword(page, username)
      await open(page)
      expect(await title(page).textContent()).toBe('Status: enter a code')
      await page.getByLabel('Code').fill('000')
      await page.getByRole('button', { name: 'Continue' }).click()
      expect(await page.getByRole('alert').textContent()).toContain('The code is not valid')
      await page.getByLabel('Code').fill(factor.recoveryCodes[0] ?? '')
      await page.getByRole('button', { name: 'Continue' }).click()
      expect(await title(page).textContent()).toBe(shown)
    })
  })

  test('refuses others, with the reason', async () => {
    const username = await createUser(false)
    await elsewhere(async (page) => {
      await enterPassword(page, username)
      expect(await page.getByRole('alert').textContent()).toBe(`${username} is not an administrator.`)
    })
  })
})

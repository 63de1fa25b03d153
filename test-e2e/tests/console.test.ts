import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type APIRequestContext, request } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Authority, newAuthority } from '../authority.js'
import { openClient } from '../client.js'
import { type Fixture, password, startFixture } from '../fixture.js'
import { type RecordedCall, readRecording, typeErrors } from '../recording.js'

/** The requests of the web console 4.5.2 to the original during a manual tour, page by page. */
const { calls, members } = readRecording('console')
const pages = [...new Set(calls.map(({ page }) => page))]

let folder: string
let fixture: Fixture
let browser: APIRequestContext
let token = ''
let authority: Authority
/** Values that recorded calls name in braces. */
const captured = new Map([['in-an-hour', new Date(Date.now() + 3_600_000).toISOString()]])

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'overlay-console-'))
  await chmod(folder, 0o755) // the processes may have an account of their own
  await writeFile(join(folder, 'index.html'), '<title>console</title>')
  fixture = await startFixture({ env: { OVERLAY_CONSOLE: folder } })
  const [address] = fixture.server.addresses
  // Playwright's client cannot use our authority
  browser = await request.newContext({ baseURL: `https://${address}`, ignoreHTTPSErrors: true })
  authority = await newAuthority('of the console')
  captured.set('password', password)
  captured.set('authority', authority.cert)
  captured.set('other', (await newAuthority('another')).cert)
  await seed(fixture)
  for (const login of calls.filter(({ call, status }) => call.includes('/authenticate') && status === 200))
    await capture(login, (await ask(login)).json)
})
afterAll(async () => {
  await browser.dispose()
  await fixture[Symbol.asyncDispose]()
  await rm(folder, { recursive: true })
})

/** The entities that existed during the recording. */
async function seed({ admin, server }: Fixture): Promise<void> {
  const create = async (kind: string, name: string, body: object): Promise<string> => {
    const id = await admin.create(kind, { name, ...body })
    captured.set(name, id)
    return id
  }
  const person = { username: 'seed-user', password: 'correct horse' }
  const staff = { type: 'Device', isAdmin: false, roleAttributes: ['staff'] }
  const identityId = await create('identities', 'seed-user', staff)
  await admin.create('authenticators', { method: 'updb', identityId, ...person })
  const data = { protocols: ['tcp'], addresses: ['seed.example'], portRanges: [{ low: 80, high: 80 }] }
  const configs = [await create('configs', 'seed-config', { configTypeId: 'g7cIWbcGg', data })]
  const web = { encryptionRequired: true, roleAttributes: ['web'], configs }
  const service = await create('services', 'seed-service', web)
  const router = await create('edge-routers', 'seed-router', { roleAttributes: ['public'] })
  await create('transit-routers', 'seed-transit', {})
  const policy = {
    semantic: 'AnyOf',
    identityRoles: ['#all'],
    serviceRoles: ['#all'],
    edgeRouterRoles: ['#all'],
  }
  for (const kind of ['service-policies', 'edge-router-policies', 'service-edge-router-policies'])
    await create(kind, `seed-${kind}`, { type: 'Dial', ...policy })
  await admin.create('terminators', { service, router, binding: 'transport', address: 'tcp:localhost:80' })
  using member = openClient(server, '/edge/client/v1')
  member.use((await member.request<{ token: string }>('POST', '/authenticate?method=password', person)).token)
  await member.request('POST', '/sessions', { serviceId: service, type: 'Dial' })
}

type Write = (value: string) => string
const asIs: Write = (value) => value
const inJson: Write = (value) => JSON.stringify(value).slice(1, -1)

const fill = (text: string, write: Write): string =>
  text.replace(/\{([a-z][\w-]*)\}/g, (all, name) => write(captured.get(name) ?? all))

const at = (value: unknown, path: string): unknown =>
  path.split('.').reduce((part, name) => (part as Record<string, unknown> | undefined)?.[name], value)

async function ask({ call, headers, body, text }: RecordedCall) {
  const [method = '', target = ''] = call.split(/ (.*)/)
  const data = text === undefined ? body && fill(JSON.stringify(body), inJson) : fill(text, asIs)
  const answer = await browser.fetch(encodeURI(fill(target, asIs)), {
    method,
    headers: {
      accept: 'application/json',
      'content-type': 'application/json',
      ...(token && { 'zt-session': token }),
      ...headers,
    },
    ...(data && { data }),
  })
  const content = await answer.text()
  const isJson = answer.headers()['content-type']?.startsWith('application/json')
  return { status: answer.status(), json: (isJson ? JSON.parse(content) : {}) as Answer }
}

interface Answer {
  readonly data?: unknown
  readonly error?: { readonly code: string }
}

interface AnswerData {
  readonly id?: string
  readonly token?: string
  readonly verificationToken?: string
}

async function capture({ call, body, keep = {} }: RecordedCall, json: Answer): Promise<void> {
  const answer = (json.data ?? {}) as AnswerData
  const { name } = (body ?? {}) as { readonly name?: string }
  if (answer.id && name) captured.set(name, answer.id)
  if (answer.token && call.includes('/authenticate?')) token = answer.token
  if (answer.verificationToken)
    captured.set('proof', (await authority.certify(answer.verificationToken)).cert)
  for (const [what, path] of Object.entries(keep)) captured.set(what, String(at(json, path)))
}

test('the gateway serves the console of the folder beside the APIs', async () => {
  const answers = await Promise.all(
    ['/zac', '/zac/identities/.Inzu-I1S', '/zac/main.js', '/edge/management/v1/version', '/version'].map(
      (path) => browser.get(path, { headers: { accept: '*/*' } }),
    ),
  )
  expect(answers.map((answer) => [answer.status(), answer.headers()['content-type']])).toEqual([
    [200, 'text/html; charset=utf-8'],
    [200, 'text/html; charset=utf-8'],
    [404, 'application/json'],
    [200, 'application/json'],
    [200, 'application/json'],
  ])
  expect(await answers[0]?.text()).toBe('<title>console</title>')
})

test.each(pages)('%s: the console gets the answers of the original', async (page) => {
  const wrong: string[] = []
  for (const recorded of calls.filter((call) => call.page === page)) {
    const { status, json } = await ask(recorded)
    if (status !== recorded.status || json.error?.code !== recorded.code)
      wrong.push(`${recorded.call}: ${status} ${JSON.stringify(json.error)}`)
    else if (recorded.shows) wrong.push(...typeErrors(json.data, patternOf(recorded), recorded.call))
    await capture(recorded, json)
  }
  expect(wrong).toEqual([])
})

const patternOf = ({ shows = '', rows }: RecordedCall) => {
  const row = members.get(shows) ?? ''
  return rows ? [row] : row
}

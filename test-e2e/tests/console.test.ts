import { type APIRequestContext, request } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Authority, newAuthority } from '../authority.js'
import { openClient } from '../client.js'
import { type Fixture, password, startFixture } from '../fixture.js'
import { type RecordedCall, readRecording, typeErrors } from '../recording.js'

/** What the web console 4.5.2 asked of the original, page by page, while somebody clicked through it. */
const { calls, members } = readRecording('console')
const pages = [...new Set(calls.map(({ page }) => page))]

let fixture: Fixture
let browser: APIRequestContext
let token = ''
let authority: Authority
const known = new Map<string, string>()

beforeAll(async () => {
  fixture = await startFixture()
  const [address] = fixture.server.addresses
  // Playwright's client takes no authority of ours
  browser = await request.newContext({ baseURL: `https://${address}`, ignoreHTTPSErrors: true })
  authority = await newAuthority('of the console')
  known.set('password', password)
  known.set('authority', authority.cert)
  known.set('other', (await newAuthority('another')).cert)
  await seed(fixture)
  for (const login of calls.filter(({ call, status }) => call.includes('/authenticate') && status === 200))
    await learn(login, (await ask(login)).json)
})
afterAll(async () => {
  await browser.dispose()
  await fixture[Symbol.asyncDispose]()
})

/** What the console found when it was recorded. */
async function seed({ admin, server }: Fixture): Promise<void> {
  const make = async (kind: string, name: string, body: object): Promise<string> => {
    const id = await admin.create(kind, { name, ...body })
    known.set(name, id)
    return id
  }
  const person = { username: 'seed-user', password: 'correct horse' }
  const staff = { type: 'Device', isAdmin: false, roleAttributes: ['staff'] }
  const identityId = await make('identities', 'seed-user', staff)
  await admin.create('authenticators', { method: 'updb', identityId, ...person })
  const data = { protocols: ['tcp'], addresses: ['seed.example'], portRanges: [{ low: 80, high: 80 }] }
  const configs = [await make('configs', 'seed-config', { configTypeId: 'g7cIWbcGg', data })]
  const web = { encryptionRequired: true, roleAttributes: ['web'], configs }
  const service = await make('services', 'seed-service', web)
  const router = await make('edge-routers', 'seed-router', { roleAttributes: ['public'] })
  await make('transit-routers', 'seed-transit', {})
  const policy = {
    semantic: 'AnyOf',
    identityRoles: ['#all'],
    serviceRoles: ['#all'],
    edgeRouterRoles: ['#all'],
  }
  for (const kind of ['service-policies', 'edge-router-policies', 'service-edge-router-policies'])
    await make(kind, `seed-${kind}`, { type: 'Dial', ...policy })
  await admin.create('terminators', { service, router, binding: 'transport', address: 'tcp:localhost:80' })
  using member = openClient(server, '/edge/client/v1')
  member.use((await member.ask<{ token: string }>('POST', '/authenticate?method=password', person)).token)
  await member.ask('POST', '/sessions', { serviceId: service, type: 'Dial' })
}

type Write = (value: string) => string
const asIs: Write = (value) => value
const inJson: Write = (value) => JSON.stringify(value).slice(1, -1)

const fill = (text: string, write: Write): string =>
  text.replace(/\{([a-z][\w-]*)\}/g, (all, name) => write(known.get(name) ?? all))

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
  const said = await answer.text()
  const isJson = answer.headers()['content-type']?.startsWith('application/json')
  return { status: answer.status(), json: (isJson ? JSON.parse(said) : {}) as Answer }
}

interface Answer {
  readonly data?: unknown
  readonly error?: { readonly code: string }
}

interface Told {
  readonly id?: string
  readonly token?: string
  readonly verificationToken?: string
}

async function learn({ call, body, keep = {} }: RecordedCall, json: Answer): Promise<void> {
  const told = (json.data ?? {}) as Told
  const { name } = (body ?? {}) as { readonly name?: string }
  if (told.id && name) known.set(name, told.id)
  if (told.token && call.includes('/authenticate?')) token = told.token
  if (told.verificationToken) known.set('proof', (await authority.certify(told.verificationToken)).cert)
  for (const [what, path] of Object.entries(keep)) known.set(what, String(at(json, path)))
}

test.each(pages)('%s: the console is answered as the original answered it', async (page) => {
  const wrong: string[] = []
  for (const asked of calls.filter((call) => call.page === page)) {
    const { status, json } = await ask(asked)
    if (status !== asked.status || json.error?.code !== asked.code)
      wrong.push(`${asked.call}: ${status} ${JSON.stringify(json.error)}`)
    else if (asked.shows) wrong.push(...typeErrors(json.data, sortOf(asked), asked.call))
    await learn(asked, json)
  }
  expect(wrong).toEqual([])
})

const sortOf = ({ shows = '', rows }: RecordedCall) => {
  const row = members.get(shows) ?? ''
  return rows ? [row] : row
}

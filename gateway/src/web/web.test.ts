import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startGateway, type TestGateway } from '../../testing/gateway.js'
import { audit, client, fabric, management } from '../api/operations.js'
import { referencePage } from './reference.js'

let gateway: TestGateway
let checks: Readonly<Record<string, string>> = { identity: 'ok', serving: 'ok' }
beforeAll(async () => {
  gateway = await startGateway({
    health: () => ({ ready: true, checks }),
  })
})
afterAll(() => gateway[Symbol.asyncDispose]())

const browser = { accept: 'text/html,application/xhtml+xml,*/*;q=0.8' }
const open = (path: string) => gateway.request(path, { headers: browser })

test('the root is a page in browsers, whose links all exist', async () => {
  const { status, headers, text } = await open('/')
  expect([status, headers['content-type']]).toEqual([200, 'text/html; charset=utf-8'])
  const links = [...text.matchAll(/href="(\/[^"]*)"/g)].map(([, path = '']) => path)
  expect(links).toEqual([
    '/docs/client',
    '/docs/management',
    '/docs/fabric',
    '/docs/audit',
    '/status',
    '/health-checks',
    '/version',
  ])
  for (const link of links) expect((await open(link)).status).toBe(200)
})

test.each([undefined, '*/*', 'application/json', 'text/plain, */*'])(
  'the root is the version for clients that accept %s',
  async (accept) => {
    const { status, headers, json } = await gateway.request('/', { headers: accept ? { accept } : {} })
    expect([status, headers['content-type']]).toEqual([200, 'application/json'])
    expect(json.data).toMatchObject({ version: 'v1.1.13' })
  },
)

test('a page without a console says how to get one', async () => {
  expect((await open('/')).text).toContain('OVERLAY_CONSOLE')
})

test.each(['/', '/docs/client', '/docs/management/', '/docs/fabric', '/docs/audit', '/health-checks'])(
  '%s loads and runs nothing',
  async (path) => {
    const { headers, text } = await open(path)
    const policy = String(headers['content-security-policy'])
    expect(policy).toMatch(/^default-src 'none'; style-src 'sha256-[^']+';/)
    expect(headers).toMatchObject({ 'x-content-type-options': 'nosniff', 'x-frame-options': 'DENY' })
    expect(text).not.toMatch(/<script|\son[a-z]+=|\ssrc=|@import|url\(/i)
    expect([...text.matchAll(/<link[^>]*>/g)].map(([link]) => link)).toEqual([
      '<link rel="icon" href="data:,">',
    ])
  },
)

test.each(['POST', 'DELETE'])('%s of a page is not allowed', async (method) => {
  expect((await gateway.request('/docs/client', { method })).status).toBe(405)
})

test.each([
  ['identity', { identity: 'silent since the failure of x', serving: 'ok' }],
  ['serving', { identity: 'ok', serving: 'no' }],
])('health has states without reasons, and its status says that %s is not healthy', async (id, failing) => {
  const { status, json } = await gateway.request('/health-checks')
  const healthy = ['identity', 'serving'].map((id) => ({ healthy: true, id }))
  expect([status, json.data]).toEqual([200, { checks: healthy, healthy: true }])
  const before = checks
  checks = failing
  const answers = [await gateway.request('/health-checks?type=short'), await open('/health-checks')]
  checks = before
  expect(answers.map((answer) => answer.status)).toEqual([503, 503])
  const states = healthy.map((state) => ({ ...state, healthy: state.id !== id }))
  expect(answers[0]?.json.data).toEqual({ checks: states, healthy: false })
  expect(answers.map(({ text }) => text).join()).not.toContain('unavailable')
})

describe.each([
  ['client', client],
  ['management', management],
  ['fabric', fabric],
  ['audit', audit],
])('the reference of the %s API', (api, operations) => {
  test('has every operation once, with its permission', async () => {
    const { text } = await open(`/docs/${api}`)
    const shown = [...text.matchAll(/<h3 id="[^"]+"><code>([A-Z]+ [^<]*)<\/code>/g)].map(([, name]) => name)
    expect(shown.sort()).toEqual([...Object.keys(operations), 'GET /swagger.json'].sort())
    expect(text.match(/Permission: /g)).toHaveLength(shown.length)
  })

  test('has only links that lead somewhere', async () => {
    const { text } = await open(`/docs/${api}`)
    const ids = [...text.matchAll(/ id="([^"]+)"/g)].map(([, id]) => id)
    expect(new Set(ids).size).toBe(ids.length)
    const targets = [...text.matchAll(/href="#([^"]+)"/g)].map(([, id]) => id)
    expect(targets.filter((target) => !ids.includes(target))).toEqual([])
  })
})

test('text of a document cannot become markup', () => {
  const hostile = `"><script>alert(1)</script>'&`
  const schema = {
    type: 'object',
    description: hostile,
    required: [hostile],
    properties: {
      [hostile]: { type: hostile, enum: [hostile], pattern: hostile },
      other: { $ref: `#/x/${hostile.replace('/', '')}` },
    },
  }
  const page = referencePage(
    {
      info: { title: hostile, version: hostile, description: hostile },
      servers: [{ url: hostile }],
      paths: {
        [hostile]: {
          get: {
            operationId: hostile,
            summary: hostile,
            tags: [hostile],
            parameters: [{ name: hostile, in: hostile, description: hostile, schema }],
            requestBody: { required: true, content: { [hostile]: { schema } } },
            responses: { [hostile]: { description: hostile, content: { [hostile]: { schema } } } },
          },
        },
      },
      components: { schemas: { [hostile]: schema } },
    },
    () => 'admin',
  )
  const text = page.bytes.toString()
  expect(text).not.toContain('<script')
  expect(text).not.toMatch(/"[^"<>]*"&gt;<|alert\(1\)<\/script/)
  expect(text).toContain('&lt;script&gt;')
})

import { Agent, request as httpsRequest } from 'node:https'
import { text } from 'node:stream/consumers'
import type { JsonSchema } from '@overlay/model'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ADMIN, ALICE, PARTIAL_ADMIN } from '../../testing/fakes.js'
import { startGateway, type TestGateway } from '../../testing/gateway.js'
import { type Access, asEndpoint, type Endpoint } from '../http/exchange.js'

let gateway: TestGateway
const agent = new Agent({ keepAlive: true, maxSockets: 8, rejectUnauthorized: false })
beforeAll(async () => {
  gateway = await startGateway()
})
afterAll(async () => {
  agent.destroy()
  await gateway[Symbol.asyncDispose]()
})

interface Caller {
  readonly token?: string
  readonly admits: readonly Access[]
}

const callers: Readonly<Record<string, Caller>> = {
  'no session': { admits: ['none'] },
  'an unknown session': { token: '00000000-0000-4000-8000-000000000000', admits: ['none'] },
  'an admin whose second factor is due': { token: PARTIAL_ADMIN, admits: ['none', 'partial'] },
  'no admin': { token: ALICE, admits: ['none', 'partial', 'full'] },
  'an admin': { token: ADMIN, admits: ['none', 'partial', 'full', 'admin'] },
}

interface Sent {
  readonly query?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
}

const JSON_TYPE = { 'content-type': 'application/json' }
const sent = (body: unknown): Sent => ({ headers: JSON_TYPE, body: JSON.stringify(body) })

/** A defect of a request, for the operations that it can befall: undefined for others. */
type Defect = (endpoint: Endpoint, method: string) => Sent | undefined

const hasJsonBody = ({ body }: Endpoint): boolean => body !== undefined && body.consumes === undefined

/** Defects that beat a missing permission, but not a missing session. */
const ofForm: Readonly<Record<string, Defect>> = {
  'a wrong content type': () => ({ headers: { 'content-type': 'text/html' }, body: 'x' }),
  'an unacceptable type': ({ produces }) => (produces ? undefined : { headers: { accept: 'text/html' } }),
  'a query parameter of the wrong type': ({ query = [] }) => {
    const parameter = query.find(({ type }) => type === 'integer')
    return parameter && { query: `?${parameter.name}=x` }
  },
  'NUL in the query': () => ({ query: '?x=%00' }),
  'an unreadable body': (endpoint) => (hasJsonBody(endpoint) ? { headers: JSON_TYPE, body: '{' } : undefined),
  'no body': ({ body }) => (body?.required ? {} : undefined),
  'a body of the wrong type': (endpoint) => (hasJsonBody(endpoint) ? sent('x') : undefined),
  'a body without its required members': ({ body }) =>
    body && body.consumes === undefined && requiresMembers(body.schema) ? sent({}) : undefined,
}

/** Defects that are reported only to callers with permission. */
const others: Readonly<Record<string, Defect>> = {
  'a text that is too long': ({ body }) => {
    const tooLong = body && body.consumes === undefined && overlong(body.schema)
    return tooLong ? sent(tooLong) : undefined
  },
  'nothing to change': ({ body }, method) =>
    method === 'PATCH' && body && !requiresMembers(body.schema) ? sent({}) : undefined,
}

/** Requests that only the handler can refuse. They are sent without permission only. */
const unrefused: Readonly<Record<string, Defect>> = {
  'an unknown id': ({ body }) => (body && !body.consumes ? sent(smallest(body.schema)) : bodyless(body)),
  'a bad filter': ({ query = [] }) =>
    query.some(({ name }) => name === 'filter') ? { query: '?filter=((&sort=nope' } : undefined,
}

const bodyless = (body: Endpoint['body']): Sent | undefined => {
  if (!body) return {}
  return { headers: { 'content-type': body.consumes?.[0] ?? '' }, body: 'x' }
}

interface Members {
  readonly properties?: Readonly<Record<string, JsonSchema>>
  readonly required?: readonly string[]
  readonly oneOf?: readonly JsonSchema[]
  readonly discriminator?: { readonly propertyName: string }
}

const requiresMembers = (schema: JsonSchema): boolean => {
  const { required = [], discriminator } = schema as Members
  return required.length > 0 || discriminator !== undefined
}

/** A value of the form, with no more members than required. */
function smallest(schema: JsonSchema): unknown {
  const { properties = {}, required = [], oneOf } = schema as Members
  if (oneOf?.[0]) return smallest(oneOf[0])
  const { enum: words, format, minLength, minItems, items } = schema as Record<string, unknown>
  if (Array.isArray(words)) return words[0]
  switch ([schema.type].flat()[0]) {
    case 'object':
      return Object.fromEntries(required.map((name) => [name, smallest(properties[name] ?? {})]))
    case 'array':
      return Array.from({ length: Number(minItems ?? 0) }, () => smallest(items as JsonSchema))
    case 'string':
      if (format === 'date-time') return '2026-01-01T00:00:00Z'
      return format === undefined ? 'a'.repeat(Number(minLength ?? 1)) : 'https://a.example'
    case 'boolean':
      return false
    default:
      return Number(schema.minimum ?? 1)
  }
}

/** The same with a text above its limit. */
function overlong(schema: JsonSchema): object | undefined {
  const { properties = {}, oneOf } = schema as Members
  if (oneOf?.[0]) return overlong(oneOf[0])
  const limited = Object.entries(properties).find(
    ([, { type, maxLength, format, enum: words }]) =>
      type === 'string' && typeof maxLength === 'number' && format === undefined && words === undefined,
  )
  if (!limited) return undefined
  const [name, { maxLength }] = limited
  return { ...(smallest(schema) as object), [name]: 'a'.repeat(Number(maxLength) + 1) }
}

interface Case {
  readonly operation: string
  readonly access: Access
  readonly path: string
  readonly method: string
  readonly endpoint: Endpoint
}

const casesOf = (api: string): Case[] => {
  const mounted = gateway.apis.find((one) => one.api === api)
  return Object.entries(mounted?.operations ?? {}).map(([operation, access]) => {
    const [method = '', path = ''] = operation.split(' ')
    const endpoint = asEndpoint(mounted?.handlers[operation] ?? { handle: () => new Response() })
    const full = mounted?.root + path.replace(/\{\w+\}/g, 'nothing')
    return { operation, access, path: full, method, endpoint }
  })
}

const call = (
  { method, path }: Case,
  { query = '', headers = {}, body }: Sent,
  token: string | undefined,
): Promise<string> =>
  new Promise((resolve, reject) => {
    const length = body === undefined ? undefined : { 'content-length': String(Buffer.byteLength(body)) }
    const outgoing = httpsRequest(
      {
        host: '127.0.0.1',
        port: gateway.port,
        path: path + query,
        method,
        agent,
        headers: { ...headers, ...length, ...(token && { 'zt-session': token }) },
      },
      (answer) => void text(answer).then(() => resolve(`${answer.statusCode}`), reject),
    )
    outgoing.on('error', reject)
    outgoing.end(body)
  })

/** The statuses that differ from the expected ones. */
async function surprises(
  api: string,
  caller: string,
  defects: Readonly<Record<string, Defect>>,
  expected: (one: Case, caller: Caller) => string | undefined,
) {
  const { token } = callers[caller] as Caller
  const calls = casesOf(api).flatMap((one) =>
    Object.entries(defects).flatMap(([defect, of]) => {
      const request = of(one.endpoint, one.method)
      const status = expected(one, callers[caller] as Caller)
      return request && status !== undefined ? [{ one, defect, request, status }] : []
    }),
  )
  const statuses = await Promise.all(calls.map(({ one, request }) => call(one, request, token)))
  const wrong = calls.flatMap(({ one: { operation }, defect, status }, i) =>
    statuses[i] === status ? [] : [`${operation} with ${defect}: ${statuses[i]}, not ${status}`],
  )
  return { count: calls.length, wrong }
}

const hasSession = ({ admits }: Caller): boolean => admits.length > 1

describe.each(['client', 'management', 'fabric', 'audit'])('%s API', (api) => {
  describe.each(Object.keys(callers))('%s', (name) => {
    test('a missing session beats every defect of a request', async () => {
      const { wrong } = await surprises(api, name, { ...ofForm, ...others, ...unrefused }, (one, caller) =>
        one.access === 'none' || hasSession(caller) ? undefined : '401',
      )
      expect(wrong).toEqual([])
    })

    test('the form of a request beats a missing permission', async () => {
      const { count, wrong } = await surprises(api, name, ofForm, (one, caller) =>
        one.access === 'none' || hasSession(caller) ? '400' : undefined,
      )
      expect(wrong).toEqual([])
      if (hasSession(callers[name] as Caller)) expect(count).toBeGreaterThan(api === 'audit' ? 10 : 100)
    })

    test('a missing permission beats everything else', async () => {
      const { wrong } = await surprises(api, name, { ...others, ...unrefused }, (one, { admits }) =>
        admits.includes(one.access) ? undefined : '401',
      )
      expect(wrong).toEqual([])
    })

    test('limits are reported to callers with permission', async () => {
      const { wrong } = await surprises(api, name, others, (one, { admits }) =>
        admits.includes(one.access) ? '400' : undefined,
      )
      expect(wrong).toEqual([])
    })
  })
})

import { Fault, retryAfter } from '@overlay/rpc'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { ADMIN, ALICE, PARTIAL_ADMIN } from '../../testing/fakes.js'
import { startGateway, type TestGateway } from '../../testing/gateway.js'

let gateway: TestGateway
beforeAll(async () => {
  gateway = await startGateway()
})
afterAll(() => gateway[Symbol.asyncDispose]())

const M = '/edge/management/v1'
const C = '/edge/client/v1'
const outcome = async (...args: Parameters<TestGateway['request']>) => {
  const { status, json } = await gateway.request(...args)
  return [status, json.error?.code, json.error?.cause?.field ?? json.error?.cause?.message]
}

test.each([
  [
    'an unknown path is 404 for every caller',
    `${M}/no-such-thing`,
    {},
    404,
    'NOT_FOUND',
    `path ${M}/no-such-thing was not found`,
  ],
  [
    'a path of the other API is unknown',
    `${M}/current-identity/edge-routers`,
    {},
    404,
    'NOT_FOUND',
    `path ${M}/current-identity/edge-routers was not found`,
  ],
  [
    'a bare path belongs to the client API',
    '/no-such-thing',
    {},
    404,
    'NOT_FOUND',
    `path ${C}/no-such-thing was not found`,
  ],
  ['paths below /edge do not', '/edge/foo', {}, 404, 'NOT_FOUND', 'path /edge/foo was not found'],
  [
    'a wrong method beats a missing session',
    `${M}/services`,
    { method: 'PUT' },
    405,
    'METHOD_NOT_ALLOWED',
    'method PUT is not allowed, but [GET,POST] are',
  ],
  [
    'a missing session beats a bad type',
    `${M}/services`,
    { method: 'POST', text: 'x', headers: { 'content-type': 'text/yaml' } },
    401,
    'UNAUTHORIZED',
    'unauthenticated for invalid credentials',
  ],
  [
    'an unknown token has no cause',
    `${M}/services`,
    { token: '00000000-0000-4000-8000-000000000000' },
    401,
    'UNAUTHORIZED',
    undefined,
  ],
  ['nor has an ill-formed one', `${M}/services`, { token: 'not-a-token' }, 401, 'UNAUTHORIZED', undefined],
  [
    'a bad bearer token counts as none',
    `${M}/services`,
    { headers: { authorization: 'Bearer x.y.z' } },
    401,
    'UNAUTHORIZED',
    'unauthenticated for invalid credentials',
  ],
  [
    'a bad type beats a bad accept',
    `${M}/services`,
    {
      method: 'POST',
      token: ALICE,
      text: 'x',
      headers: { 'content-type': 'text/yaml', accept: 'text/html' },
    },
    400,
    'COULD_NOT_VALIDATE',
    'Content-Type',
  ],
  [
    'a bad accept beats a bad query',
    `${M}/services?limit=x`,
    { token: ALICE, headers: { accept: 'text/html' } },
    400,
    'COULD_NOT_VALIDATE',
    'Accept',
  ],
  [
    'a bad query beats a missing permission',
    `${M}/services?limit=x`,
    { token: ALICE },
    400,
    'COULD_NOT_VALIDATE',
    'limit',
  ],
  [
    'a bad body does too',
    `${M}/services`,
    { method: 'POST', token: ALICE, body: {} },
    400,
    'COULD_NOT_VALIDATE',
    'encryptionRequired',
  ],
  [
    'a missing permission beats a limit of the body',
    `${M}/services`,
    { method: 'POST', token: ALICE, body: { name: '', encryptionRequired: true } },
    401,
    'UNAUTHORIZED',
    undefined,
  ],
  [
    'a missing permission beats a change that changes nothing',
    `${M}/services/x`,
    { method: 'PATCH', token: ALICE, body: {} },
    401,
    'UNAUTHORIZED',
    undefined,
  ],
  [
    'a change that changes nothing is refused with permission',
    `${M}/services/x`,
    { method: 'PATCH', token: ADMIN, body: {} },
    400,
    'COULD_NOT_VALIDATE',
    'no fields to update',
  ],
  [
    'a request with a body is answered whatever it accepts',
    `${M}/services/x`,
    { method: 'PATCH', token: ADMIN, body: { name: 'a' }, headers: { accept: 'text/html' } },
    200,
    undefined,
    undefined,
  ],
  ...(['', '/', '/no-such-thing', '/ws-api', '/swagger.json', '/services'] as const).flatMap((path) => [
    [
      `/fabric/v1${path} asks for a session before it is known, with any method`,
      `/fabric/v1${path}`,
      { method: 'PUT' },
      401,
      'UNAUTHORIZED',
      'unauthenticated for invalid credentials',
    ] as const,
    [
      `/fabric/v1${path} asks for a valid session`,
      `/fabric/v1${path}`,
      { token: 'stale' },
      401,
      'UNAUTHORIZED',
      undefined,
    ] as const,
  ]),
  [
    'an unknown path below /fabric/v1 is 404 with a session',
    '/fabric/v1/no-such-thing',
    { token: ALICE },
    404,
    'NOT_FOUND',
    'path /fabric/v1/no-such-thing was not found',
  ],
  [
    'a wrong method below /fabric/v1 is 405 with a session',
    '/fabric/v1/services',
    { method: 'PUT', token: ALICE },
    405,
    'METHOD_NOT_ALLOWED',
    'method PUT is not allowed, but [GET,POST] are',
  ],
  ['paths beside /fabric/v1 are 404', '/fabric/v2', {}, 404, 'NOT_FOUND', 'path /fabric/v2 was not found'],
  [
    'a valid body of a caller without permission is 401',
    `${M}/services`,
    { method: 'POST', token: ALICE, body: { name: 'a', encryptionRequired: true } },
    401,
    'UNAUTHORIZED',
    undefined,
  ],
  [
    'an admin whose second factor is due may not',
    `${M}/services`,
    { token: PARTIAL_ADMIN },
    401,
    'UNAUTHORIZED',
    undefined,
  ],
  [
    'a partial session may ask for itself',
    `${M}/current-api-session`,
    { token: PARTIAL_ADMIN },
    200,
    undefined,
    undefined,
  ],
  ['but for nothing more', `${M}/current-identity`, { token: PARTIAL_ADMIN }, 401, 'UNAUTHORIZED', undefined],
  [
    'an empty body is reported by the name of the body',
    `${M}/services`,
    { method: 'POST', token: ADMIN },
    400,
    'COULD_NOT_VALIDATE',
    'service',
  ],
  [
    'a null body is an empty object',
    `${M}/services`,
    { method: 'POST', token: ADMIN, text: 'null' },
    400,
    'COULD_NOT_VALIDATE',
    'encryptionRequired',
  ],
  [
    'an array is no object',
    `${M}/services`,
    { method: 'POST', token: ADMIN, text: '[]' },
    400,
    'COULD_NOT_PARSE_BODY',
    'the body cannot be read as object',
  ],
  [
    'broken JSON cannot be parsed',
    `${M}/services`,
    { method: 'POST', token: ADMIN, text: '{"name":"x"' },
    400,
    'COULD_NOT_PARSE_BODY',
    'the body is not valid JSON',
  ],
  [
    'nor can a wrong JSON type',
    `${M}/services`,
    { method: 'POST', token: ADMIN, body: { name: 5 } },
    400,
    'COULD_NOT_PARSE_BODY',
    'name cannot be read as string',
  ],
  [
    'a body without a type is a stream of bytes',
    `${M}/services`,
    { method: 'POST', token: ADMIN, text: '{}', headers: { 'content-type': '' } },
    400,
    'COULD_NOT_VALIDATE',
    'Content-Type',
  ],
  [
    'the type may have parameters',
    `${M}/services`,
    {
      method: 'POST',
      token: ADMIN,
      text: '{}',
      headers: { 'content-type': 'application/json; charset=utf-8' },
    },
    400,
    'COULD_NOT_VALIDATE',
    'encryptionRequired',
  ],
  [
    'a login needs a method',
    `${M}/authenticate`,
    { method: 'POST', body: {} },
    400,
    'COULD_NOT_VALIDATE',
    'method',
  ],
  [
    'and one that exists',
    `${M}/authenticate?method=magic`,
    { method: 'POST', body: {} },
    400,
    'COULD_NOT_VALIDATE',
    'method',
  ],
  [
    'short passwords are refused at the login',
    `${M}/authenticate?method=password`,
    { method: 'POST', body: { username: 'admin', password: 'abc' } },
    400,
    'COULD_NOT_VALIDATE',
    'password',
  ],
  [
    'a login ignores a stale session',
    `${M}/authenticate?method=password`,
    { method: 'POST', token: 'stale', body: {} },
    200,
    undefined,
    undefined,
  ],
  [
    'a limit may be as large as the wire allows',
    `${M}/services?limit=9223372036854775807`,
    { token: ADMIN },
    200,
    undefined,
    undefined,
  ],
  [
    'but no larger',
    `${M}/services?limit=9223372036854775808`,
    { token: ADMIN },
    400,
    'COULD_NOT_VALIDATE',
    'limit',
  ],
  [
    'a NUL in the query is refused',
    `${M}/services?filter=%00`,
    { token: ADMIN },
    400,
    'COULD_NOT_VALIDATE',
    'the query must not contain NUL characters',
  ],
  [
    'a NUL in a parameter that the operation does not name is refused',
    `${M}/services/x?asIdentity=%00`,
    { token: ADMIN },
    400,
    'COULD_NOT_VALIDATE',
    'the query must not contain NUL characters',
  ],
  [
    'a NUL in an id names nothing',
    `${M}/services/a%00b`,
    { token: ADMIN },
    404,
    'NOT_FOUND',
    `path ${M}/services/a%00b was not found`,
  ],
] as const)('%s', async (_rule, path, sent, status, code, cause) => {
  expect(await outcome(path, sent)).toEqual([status, code, cause])
})

const PEM = 'application/x-pem-file'
test.each([
  ['a failing enrollment', `${C}/enroll`, PEM, {}],
  ['the token of an authority without a session', `${M}/cas/x/jwt`, 'application/jwt', {}],
  ['a QR code', `${C}/current-identity/mfa/qr-code`, 'image/png', { token: ALICE }],
] as const)(
  '%s is refused without a body, where the client accepts only %s',
  async (_, path, accept, more) => {
    const sent = path.endsWith('enroll') ? { method: 'POST', text: 'x', ...more } : more
    const headers = { 'content-type': 'text/plain', accept }
    const refused = await gateway.request(path, { ...sent, headers })
    expect([refused.status >= 400, refused.headers['content-type'], refused.text]).toEqual([true, accept, ''])
    const readable = await gateway.request(path, {
      ...sent,
      headers: { ...headers, accept: `${accept}, application/json` },
    })
    expect([readable.status, readable.headers['content-type']]).toEqual([refused.status, 'application/json'])
  },
)

test('a refusal in YAML is the envelope', async () => {
  const path = `${C}/specs/nothing/spec`
  const { status, headers, json } = await gateway.request(path, { headers: { accept: 'text/yaml' } })
  expect([status, headers['content-type'], json.error?.code]).toEqual([404, 'text/yaml', 'NOT_FOUND'])
})

test('HEAD is not allowed', async () => {
  const { status, body } = await gateway.request(`${M}/services`, { method: 'HEAD', token: ADMIN })
  expect([status, body.length]).toEqual([405, 0])
})

test('every answer names the server and the process', async () => {
  for (const path of [`${M}/version`, '/no-such-thing', `${M}/services`]) {
    const { headers } = await gateway.request(path)
    expect(headers).toMatchObject({ server: 'ziti-controller/v1.1.13', 'ziti-instance-id': 'cinstance' })
  }
})

test('an answer to a valid session says when it ends, an error too, and where none is needed', async () => {
  const paths = ['services?limit=1', 'services/nothing', 'version', 'specs', 'no-such-thing']
  for (const path of paths.map((path) => `${M}/${path}`)) {
    const { headers } = await gateway.request(path, { token: ADMIN })
    expect(headers['expiration-seconds']).toBe('1800')
    expect(headers['expires-at']).toMatch(/^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d+)? \+0000 UTC$/)
  }
})

test('an unknown session is accepted where none is needed, without a call to its owner', async () => {
  const asked = gateway.fakes.called('identity.getApiSession')
  const { status, headers } = await gateway.request(`${M}/version`, {
    token: '99999999-9999-4999-8999-999999999999',
  })
  expect([status, headers['expires-at']]).toEqual([200, undefined])
  expect(gateway.fakes.called('identity.getApiSession')).toBe(asked)
})

test('an answer without a session does not', async () => {
  const { headers } = await gateway.request(`${M}/services`)
  expect(headers['expires-at']).toBeUndefined()
  expect(headers['www-authenticate']).toBeUndefined()
})

test('content types are exact and lengths are sent', async () => {
  const { headers } = await gateway.request(`${M}/services`, { token: ADMIN })
  expect(headers['content-type']).toBe('application/json')
  expect(headers['content-length']).toBeDefined()
})

test('an unexpected failure is answered without details, and logged', async () => {
  gateway.fakes.instead.set('policy.entities.get', async () => {
    throw new TypeError('secret detail')
  })
  const { status, text, json } = await gateway.request(`${M}/services/x`, { token: ADMIN })
  gateway.fakes.instead.delete('policy.entities.get')
  expect([status, json.error?.code]).toEqual([500, 'UNHANDLED'])
  expect(text).not.toContain('secret')
  expect(gateway.accessRecords.at(-1)?.c.env.error).toBeInstanceOf(TypeError)
})

test('a call to a service carries the address of the client', async () => {
  await gateway.request(`${M}/services`, { token: ADMIN })
  const call = gateway.fakes.calls.findLast(({ method }) => method === 'policy.entities.list')
  expect(call?.context.sourceAddress).toBe('127.0.0.1')
})

test('each request is recorded with operation and fault', async () => {
  await gateway.request(`${M}/services/x?limit=1`, { token: ALICE })
  const record = gateway.accessRecords.at(-1)
  expect(record).toMatchObject({ status: 401, aborted: false })
  const facts = { operation: 'GET /services/{id}', faultCode: 'UNAUTHORIZED', session: { id: 's-2222' } }
  expect(record?.c.env).toMatchObject(facts)
})

test('the trace of the client goes on', async () => {
  const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'
  await gateway.request(`${M}/services`, { token: ADMIN, headers: { traceparent } })
  const call = gateway.fakes.calls.findLast(({ method }) => method === 'policy.entities.list')
  expect(call?.context).toMatchObject({ traceparent, caller: { identityId: 'i-1111', isAdmin: true } })
})

test.each(['RATE_LIMITED', 'UNAVAILABLE', 'TIMEOUT'] as const)('%s says when to try again', async (code) => {
  gateway.fakes.instead.set('policy.entities.get', async () => {
    throw new Fault(code)
  })
  const { headers } = await gateway.request(`${M}/services/x`, { token: ADMIN })
  gateway.fakes.instead.delete('policy.entities.get')
  expect(headers['retry-after']).toBe('1')
})

test('a refusal that knows when to try again says so', async () => {
  gateway.fakes.instead.set('policy.entities.get', async () => {
    throw retryAfter(42.1)
  })
  const { status, headers } = await gateway.request(`${M}/services/x`, { token: ADMIN })
  gateway.fakes.instead.delete('policy.entities.get')
  expect([status, headers['retry-after']]).toEqual([429, '43'])
})

test.each([
  ['fails', () => Promise.reject(new Fault('UNAVAILABLE'))],
  ['succeeds', async () => ({ id: 'late', position: undefined })],
])('a call that %s after the request has timed out changes nothing about its answer', async (_how, end) => {
  await using hasty = await startGateway({ requestMs: 50 })
  const thrown: unknown[] = []
  const note = (err: unknown): void => void thrown.push(err)
  process.on('unhandledRejection', note)
  let release: () => void = () => undefined
  const released = new Promise<void>((resolve) => (release = resolve))
  hasty.fakes.instead.set('policy.entities.create', () => released.then(end))
  const body = { name: 'a', encryptionRequired: true }
  const { status, headers } = await hasty.request(`${M}/services`, { method: 'POST', token: ADMIN, body })
  expect([status, headers['retry-after']]).toEqual([503, '1'])
  release()
  await new Promise(setImmediate)
  await new Promise(setImmediate)
  process.off('unhandledRejection', note)
  expect(thrown).toEqual([])
})

test('requests above the limit of a session wait, then are refused with a time, and others are answered', async () => {
  await using limited = await startGateway({ requestsPerSession: 5 })
  const ask = async (token: string) => {
    const { status, headers } = await limited.request(`${M}/current-identity`, { token })
    return [status, headers['retry-after']]
  }

  const asked = Array.from({ length: 60 }, () => ask(ADMIN))
  expect(await ask(ALICE)).toEqual([200, undefined])
  const answers = await Promise.all(asked)
  const refused = answers.filter(([status]) => status === 429)
  expect(refused.length).toBeGreaterThan(0)
  expect(new Set(refused.map(([, seconds]) => seconds))).toEqual(new Set(['4']))
  expect(answers.filter(([status]) => status === 200).length).toBe(60 - refused.length)
  expect(60 - refused.length).toBeGreaterThanOrEqual(20)
})

test('requests above the limit of a source are refused before their session is looked up', async () => {
  await using limited = await startGateway({ requestsPerSource: 5 })
  const answers = await Promise.all(
    Array.from({ length: 60 }, () => limited.request(`${M}/no-such-thing`, { token: 'unknown' })),
  )
  const statuses = answers.map(({ status }) => status)
  expect(new Set(statuses)).toEqual(new Set([404, 429]))
})

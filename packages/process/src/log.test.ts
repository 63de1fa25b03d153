import { Fault } from '@overlay/rpc'
import { describe, expect, test } from 'vitest'
import { type Log, openLog } from './log.js'

function logged(format: 'json' | 'text', level = 'info') {
  const lines: string[] = []
  const log = openLog('policy', { level, format, destination: { write: (line) => void lines.push(line) } })
  return { log, lines }
}
const SECRET = 's3cr3t'

describe('a secret never reaches a line, wherever it lies:', () => {
  test.each<[string, object]>([
    ['on top', { password: SECRET, token: SECRET, secret: SECRET, key: SECRET, jwt: SECRET, salt: SECRET }],
    ['deep within', { body: { authenticator: { updb: [{ newPassword: SECRET }] } } }],
    ['under names of two words', { clientSecret: SECRET, private_key: SECRET, 'x-auth-token': SECRET }],
    ['in headers', { headers: { authorization: SECRET, 'zt-session': SECRET, cookie: SECRET } }],
    ['as the PEM of a key', { keyPem: SECRET, serverKeyPEM: SECRET }],
    ['in lists of codes', { recoveryCodes: [SECRET] }],
    ['as an object of its own', { token: { value: SECRET } }],
    ['in a map', { sessions: new Map([['token', SECRET]]) }],
    ['as bytes', { payload: Buffer.from(SECRET) }],
    ['in a private key', { body: [`-----BEGIN PRIVATE KEY-----\n${SECRET}\n-----END PRIVATE KEY-----`] }],
    ['in a URL', { url: `postgres://policy:${SECRET}@localhost/db` }],
    [
      'in an error',
      { err: Object.assign(new Error('failed'), { token: SECRET, input: { password: SECRET } }) },
    ],
    ['in a private key of an error', { err: new Error(`not PEM: -----BEGIN PRIVATE KEY-----\n${SECRET}`) }],
    ['in the URL of an error', { err: new Error(`cannot connect to nats://u:${SECRET}@host`) }],
    [
      'in the cause of an error',
      { err: new Error('a', { cause: Object.assign(new Error('b'), { key: SECRET }) }) },
    ],
    [
      'in a fault',
      { err: new Fault('UNHANDLED', undefined, Object.assign(new Error('c'), { secret: SECRET })) },
    ],
  ])('%s', (_where, fields) => {
    for (const format of ['json', 'text'] as const) {
      const { log, lines } = logged(format)
      log.info(fields, 'happened')
      log.child(fields).info('happened')
      expect(lines).toHaveLength(2)
      expect(lines.join()).not.toContain(SECRET)
      expect(lines.join()).not.toContain(Buffer.from(SECRET).toString('base64'))
    }
  })
})

test('what only sounds like a secret is kept', () => {
  const { log, lines } = logged('json')
  const fields = {
    keyId: 'k1',
    tokenType: 'Bearer',
    certPem: 'cert',
    apiSessionId: 's1',
    monkey: 1,
    code: 'OK',
  }
  log.info(fields, 'happened')
  expect(JSON.parse(lines[0] ?? '')).toMatchObject(fields)
})

test('a line has level, time, service, message and fields', () => {
  const { log, lines } = logged('json')
  log.warn({ schema: 'policy', at: new Date(0) }, 'change stream lost')
  expect(JSON.parse(lines[0] ?? '')).toEqual({
    level: 'warn',
    time: expect.stringMatching(/^\d{4}-\d\d-\d\dT/),
    service: 'policy',
    schema: 'policy',
    at: '1970-01-01T00:00:00.000Z',
    msg: 'change stream lost',
  })
})

test('lines below the level are not written', () => {
  const { log, lines } = logged('json', 'warn')
  log.info('not this one')
  expect(lines).toEqual([])
})

test('text is for people: one line, then the stack of an error with its causes', () => {
  const { log, lines } = logged('text')
  log.error({ err: new Error('outer', { cause: new Error('inner') }), kind: 'a b', n: 1 }, 'call failed')
  const [head, ...stack] = (lines[0] ?? '').trimEnd().split('\n')
  expect(head).toMatch(/^\d\d:\d\d:\d\d\.\d{3} error policy: call failed kind="a b" n=1$/)
  expect(stack[0]).toBe('  Error: outer')
  expect(stack.join()).toContain('inner')
})

test('an object that contains itself does not end the process', () => {
  const { log, lines } = logged('json')
  const loop: Record<string, unknown> = { password: SECRET }
  loop.self = loop
  log.info({ loop }, 'happened')
  expect(lines.join()).not.toContain(SECRET)
})

describe('a line with fixed members', () => {
  const hostile = [
    ...[
      '"',
      '\\',
      '\\"',
      '\n',
      '\r\n',
      '\0',
      '\u001b[2J',
      '\u007f',
      '\u2028',
      '\ud800',
      '","admin":true,"x":"',
      '}\n{',
    ],
    ...['é', '😀', '/path?a=b&c={d}', '2001:db8::1'],
  ]
  const requestLine = (log: Log) => log.fixedLines('request', ['path', 'status', 'aborted', 'code'])

  test.each(hostile)('holds %j as it is', (path) => {
    const { log, lines } = logged('json')
    requestLine(log)({ path, status: 200.25, aborted: true, code: undefined })
    expect(lines).toHaveLength(1)
    expect(lines[0]).toMatch(/^[^\n]*\n$/)
    expect(JSON.parse(lines[0] ?? '')).toEqual({
      level: 'info',
      time: expect.stringMatching(/^\d{4}-\d\d-\d\dT/),
      service: 'policy',
      path,
      status: 200.25,
      aborted: true,
      msg: 'request',
    })
  })

  test('is the same as another line', () => {
    const { log, lines } = logged('json')
    const facts = { path: '/a"b', status: 200, aborted: undefined, code: 'NOT_FOUND' }
    requestLine(log)(facts)
    log.info(facts, 'request')
    const [fixed, usual] = lines.map((line) => Object.entries({ ...JSON.parse(line), time: '' }))
    expect(fixed).toEqual(usual)
  })

  test('holds no number that JSON has no form for', () => {
    const { log, lines } = logged('json')
    requestLine(log)({ path: '', status: Number.NaN, aborted: undefined, code: undefined })
    expect(JSON.parse(lines[0] ?? '')).toMatchObject({ path: '', status: null })
  })

  test('has no member that is named like a secret', () => {
    const { log } = logged('json')
    expect(() => log.fixedLines('request', ['path', 'zt-session'])).toThrow('zt-session')
    expect(() => log.fixedLines('request', ['accessToken'])).toThrow('accessToken')
  })

  test('has no password of a URL, and no private key', () => {
    const { log, lines } = logged('json')
    for (const path of [`https://u:${SECRET}@host/`, `-----BEGIN PRIVATE KEY-----\n${SECRET}`])
      requestLine(log)({ path, status: 400, aborted: undefined, code: undefined })
    expect(lines.join()).not.toContain(SECRET)
  })

  test('is text for people too, and is not written below its level', () => {
    const { log, lines } = logged('text')
    const write = requestLine(log)
    write({ path: 'a b', status: 200, aborted: undefined, code: undefined })
    expect(lines[0]).toMatch(/^\d\d:\d\d:\d\d\.\d{3} info {2}policy: request path="a b" status=200\n$/)
    log.level = 'warn'
    write({ path: 'a b', status: 200, aborted: undefined, code: undefined })
    expect(lines).toHaveLength(1)
  })
})

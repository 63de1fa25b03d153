import { expect, test } from 'vitest'
import { errorText } from '../system/error-text.js'
import { busProblem, databaseProblem } from './connect-problem.js'

const error = (code: string, message = 'what', name = 'Error') =>
  Object.assign(new Error(message), { code, name })
const url = 'postgres://ana:geheim@db.example.org/net'

test.each([
  [error('ECONNREFUSED'), 'connection refused: start the server'],
  [
    new AggregateError([error('ECONNREFUSED'), error('ECONNREFUSED')]),
    'connection refused: start the server',
  ],
  [new Error('wrapped', { cause: error('ENOTFOUND') }), 'unknown host'],
  [error('EAI_AGAIN'), 'the name service of this machine does not answer'],
  [new Error('timeout expired'), 'no answer: check host'],
  [error('28P01'), 'wrong password for user ana'],
  [
    new Error('SASL: client password must be a string'),
    'the server requires a password, and the URL has none',
  ],
  [error('28000', 'no pg_hba.conf entry'), 'does not admit user ana (no pg_hba.conf entry)'],
  [error('3D000'), 'there is no database net: run create database net owner ana'],
  [
    error('42501', 'permission denied for schema pki'),
    'user ana lacks rights (permission denied for schema pki)',
  ],
  [error('53100'), 'the disk of the database server is full'],
  [error('53300'), 'raise its max_connections'],
  [error('57P03'), 'try again'],
  [error('28000', 'no pg_hba.conf entry for host "x", no encryption'), 'set OVERLAY_DATABASE_TLS'],
  [error('28000', 'connection requires a valid client certificate'), 'put tls.crt and tls.key into'],
  [error('28000', 'certificate authentication failed for user "ana"'), 'correct the user or its certificate'],
  [new Error('The server does not support SSL connections'), 'the server has no TLS: set ssl = on there'],
  [error('SELF_SIGNED_CERT_IN_CHAIN'), 'put its authority into ca.crt in OVERLAY_DATABASE_TLS'],
  [error('CERT_HAS_EXPIRED'), 'its certificate has expired: renew it there'],
  [error('ERR_SSL_TLSV1_ALERT_UNKNOWN_CA'), 'it requires a client certificate that it trusts'],
  [error('ERR_SSL_SSL/TLS_ALERT_CERTIFICATE_EXPIRED'), 'it requires a client certificate that it trusts'],
  [error('ERR_TLS_CERT_ALTNAME_INVALID'), 'its certificate is for another host'],
  [new Error('Connection terminated unexpectedly'), 'the server closed the connection'],
])('a database that fails with %s is reported with what to do, without the password', (err, reason) => {
  const problem = databaseProblem(err, url)?.reason
  expect(problem).toContain('cannot use the database net at db.example.org:5432 as user ana')
  expect(problem).toContain(reason)
  expect(problem).toContain('(DATABASE_URL)')
  expect(problem).not.toContain('geheim')
})

test.each([
  ['28P01', 'password authentication failed for user "net_pki"', 'set OVERLAY_HOME to the directory'],
  ['28000', 'no pg_hba.conf entry for host "x", user "net_pki"', 'allow it in pg_hba.conf'],
  ['28000', 'role "net_pki" does not exist', 'does not admit user net_pki (role "net_pki" does not exist)'],
])(
  'a server that refuses the role of a service is reported with the role: %s %s',
  (code, message, advice) => {
    const err = new Error('the service is unavailable', { cause: error(code, message) })
    const reason = databaseProblem(err, url)?.reason
    expect(reason).toContain('as user net_pki: ')
    expect(reason).toContain(advice)
  },
)

test('the directory of a socket is named, and a database without a name is that of the user', () => {
  const problem = databaseProblem(
    error('ENOENT', 'connect ENOENT /s/.s.PGSQL.5432'),
    'postgres://ana@localhost?host=%2Fs',
  )
  expect(problem?.isWrongSetting).toBe(false)
  expect(problem?.reason).toContain('the database ana at /s as user ana: there is no socket')
})

test.each([
  [error('ECONNREFUSED'), false],
  [error('EAI_AGAIN'), false],
  [new Error('timeout expired'), false],
  [new Error('Connection terminated unexpectedly'), false],
  [error('53300'), false],
  [error('57P03'), false],
  [error('28P01'), true],
  [error('28000'), true],
  [error('3D000'), true],
  [error('42501'), true],
  [error('53100'), true],
  [error('ENOTFOUND'), true],
  [error('SELF_SIGNED_CERT_IN_CHAIN'), true],
  [error('ERR_SSL_TLSV1_ALERT_UNKNOWN_CA'), true],
  [error('EACCES', 'connect EACCES /s'), true],
  [new Error('The server does not support SSL connections'), true],
])('whether a database that fails with %s is the fault of a setting: %s', (err, isWrongSetting) => {
  expect(databaseProblem(err, url)?.isWrongSetting).toBe(isWrongSetting)
})

test('errors that are not about the connection stay as they are', () => {
  expect(databaseProblem(new Error('migration x of schema pki comes before y'), url)).toBeUndefined()
  expect(databaseProblem(error('ENOENT', 'open migrations'), url)).toBeUndefined()
  expect(databaseProblem(error('57014', 'canceling statement due to statement timeout'), url)).toBeUndefined()
})

test.each([
  [error('ECONNREFUSED'), 'connection refused', false],
  [error('TIMEOUT', 'timeout'), 'no answer: check host', false],
  [error('', 'Authorization Violation', 'AuthorizationError'), 'it refuses user and password', true],
  [error('ENOTFOUND'), 'unknown host', true],
  [
    new Error('x', { cause: error('DEPTH_ZERO_SELF_SIGNED_CERT') }),
    'not trusted: put its authority into ca.crt',
    true,
  ],
  [
    error('ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED'),
    'it requires a client certificate that it trusts: put',
    true,
  ],
  [error('ERR_SSL_SSL/TLS_ALERT_BAD_CERTIFICATE'), 'it requires a client certificate that it trusts', true],
  [new Error("server does not support 'tls'"), 'TLS fails', true],
  [new Error('other'), 'other', false],
])('a bus that fails with %s is reported, without the password', (err, reason, isWrongSetting) => {
  const problem = busProblem(err, 'nats://ana:geheim@a:4222,nats://b:4222')
  expect(problem.reason).toContain('cannot reach the bus at a:4222, b:4222: ')
  expect(problem.reason).toContain(reason)
  expect(problem.reason).not.toContain('geheim')
  expect(problem.isWrongSetting).toBe(isWrongSetting)
})

test('an error of several addresses has a text', () => {
  expect(
    errorText(new Error('a', { cause: Object.assign(new AggregateError([]), { code: 'ECONNREFUSED' }) })),
  ).toBe('a: ECONNREFUSED')
})

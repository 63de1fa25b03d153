import { Metadata, type ServiceError, status } from '@grpc/grpc-js'
import { describe, expect, test } from 'vitest'
import {
  Fault,
  type FaultCode,
  type FieldCause,
  faults,
  goText,
  invalid,
  notFound,
  retryAfter,
  toFault,
  toStatus,
} from './fault.js'

/** The fault that a client receives. */
const received = (err: unknown): Fault => toFault(toStatus(err) as ServiceError)
const broken = (code: status, details = ''): ServiceError =>
  Object.assign(new Error(details), { code, details, metadata: new Metadata() })

test.each(Object.keys(faults) as FaultCode[])('%s arrives with its code, status and text', (code) => {
  const arrived = received(new Fault(code))
  expect(arrived).toMatchObject({ code, message: faults[code][2], detail: undefined, data: undefined })
  expect(toStatus(arrived).code).toBe(faults[code][1])
})

test('only failures of the product have a stack', () => {
  expect(new Fault('UNHANDLED').stack).toMatch(/\n +at /)
  expect(new Fault('NOT_FOUND').stack).not.toMatch(/\n +at /)
  expect(new Error('after it').stack).toMatch(/\n +at /)
})

test('the time to wait arrives, in whole seconds, at least one', () => {
  expect(received(retryAfter(41.2)).retryAfterSeconds).toBe(42)
  expect(received(retryAfter(0)).retryAfterSeconds).toBe(1)
  expect(received(new Fault('SERVER_TOO_MANY_REQUESTS')).retryAfterSeconds).toBeUndefined()
})

test('a cause arrives complete', () => {
  expect(received(invalid('name', 'is too long', ['a', 1]))).toMatchObject({
    code: 'COULD_NOT_VALIDATE',
    detail: { field: 'name', reason: 'is too long', value: '[a 1]' },
  })
  expect(received(notFound('service', 'x1'))).toMatchObject({
    code: 'NOT_FOUND',
    detail: 'service with id x1 not found',
  })
  const data = { policy: [{ id: 'c', isPassing: false, typeId: 'MFA' }] }
  expect(received(new Fault('INVALID_POSTURE', 'no check passed', undefined, data))).toMatchObject({
    detail: 'no check passed',
    data,
  })
})

test('an error that is not a fault reveals nothing', () => {
  const arrived = received(new Error('select * from secret'))
  expect(arrived).toMatchObject({ code: 'UNHANDLED', detail: undefined })
  expect(JSON.stringify(toStatus(new Error('select * from secret')))).not.toContain('secret')
})

describe('without a fault', () => {
  test.each<[string, ServiceError, FaultCode]>([
    ['a service that is down', broken(status.UNAVAILABLE), 'UNAVAILABLE'],
    ['a replica of a former release', broken(status.UNIMPLEMENTED), 'UNAVAILABLE'],
    ['a service that stops', broken(status.CANCELLED), 'UNAVAILABLE'],
    ['a stream that is reset', broken(status.INTERNAL, 'Received RST_STREAM with code 2'), 'UNAVAILABLE'],
    ['a service that is late', broken(status.DEADLINE_EXCEEDED), 'TIMEOUT'],
    ['a call of a peer that may not make it', broken(status.PERMISSION_DENIED, 'refused'), 'UNHANDLED'],
    ['a message that is too large', broken(status.RESOURCE_EXHAUSTED), 'UNHANDLED'],
  ])('%s', (_what, err, code) => {
    expect(toFault(err)).toMatchObject({ code, cause: err })
  })
})

test.each<[unknown, string]>([
  [undefined, '<nil>'],
  [null, '<nil>'],
  ['text', 'text'],
  [true, 'true'],
  [1.5, '1.5'],
  [[], '[]'],
  [['a', ['b', null]], '[a [b <nil>]]'],
  [{ b: 1, a: { c: [] } }, 'map[a:map[c:[]] b:1]'],
])('Go prints %j as %s', (value, text) => {
  expect(goText(value)).toBe(text)
})

test('a fault may be the cause of another', () => {
  const detail = { fault: 'NOT_FOUND' } as const
  expect(received(new Fault('COULD_NOT_PROCESS_CSR', detail))).toMatchObject({
    code: 'COULD_NOT_PROCESS_CSR',
    detail,
  })
})

test('a field error returns what was sent, shortened', () => {
  const long = 'x'.repeat(100_000)
  const { detail } = received(invalid(long, long, [long])) as { detail: FieldCause }
  for (const text of Object.values(detail) as string[]) expect(text.length).toBeLessThan(5000)
  expect(String(received(new Fault('NOT_FOUND', long)).detail).length).toBeLessThan(5000)
})

test.each([
  ['whole', '-----BEGIN EC PRIVATE KEY-----\nc2VjcmV0\n-----END EC PRIVATE KEY-----\n'],
  ['cut off', '-----BEGIN PRIVATE KEY-----\nc2VjcmV0'],
  ['with escaped line ends', '-----BEGIN RSA PRIVATE KEY-----\\nc2VjcmV0\\n-----END RSA PRIVATE KEY-----'],
  ['longer than what is returned', `-----BEGIN PRIVATE KEY-----\n${'c2VjcmV0'.repeat(2000)}`],
  ['encrypted', '-----BEGIN ENCRYPTED PRIVATE KEY-----\nc2VjcmV0\n-----END ENCRYPTED PRIVATE KEY-----'],
])('a fault does not return a private key that is %s', (_what, key) => {
  const sent = `before\n${key}`
  const fault = new Fault('COULD_NOT_VALIDATE', sent, undefined, { checks: [{ value: sent }] })
  for (const each of [received(fault), received(invalid('certPem', sent, { deep: [sent] }))]) {
    expect(JSON.stringify([each.detail, each.data])).not.toContain('c2VjcmV0')
    expect(JSON.stringify(each.detail)).toContain('before')
  }
})

test('a certificate beside a private key is returned', () => {
  const certificate = '-----BEGIN CERTIFICATE-----\nMII=\n-----END CERTIFICATE-----\n'
  const key = '-----BEGIN PRIVATE KEY-----\nc2VjcmV0\n-----END PRIVATE KEY-----\n'
  expect(received(invalid('certPem', 'x', key + certificate)).detail).toMatchObject({
    value: `[private key]\n${certificate}`,
  })
})

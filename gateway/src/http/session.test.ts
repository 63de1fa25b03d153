import type { IncomingMessage } from 'node:http'
import { expect, test } from 'vitest'
import { credentialsOf } from './session.js'

const sent = (...rawHeaders: string[]): IncomingMessage => {
  const headers: Record<string, string> = {}
  for (let i = 0; i < rawHeaders.length; i += 2)
    headers[rawHeaders[i]?.toLowerCase() ?? ''] ??= rawHeaders[i + 1] ?? ''
  return { headers, rawHeaders } as unknown as IncomingMessage
}

test('bearers are those of all headers, in order, whatever else the headers contain', () => {
  const request = sent(
    'Authorization',
    'Basic eA==',
    'AUTHORIZATION',
    'Bearer a',
    'x',
    'y',
    'authorization',
    'Bearer b',
  )
  expect(credentialsOf(request)).toEqual({ token: '', bearers: ['a', 'b'] })
})

test.each([['Bearer a'], ['bearer a'], ['BEARER a']])('%j is a bearer', (value) => {
  expect(credentialsOf(sent('authorization', value)).bearers).toEqual(['a'])
})

test.each([['Bearer'], ['Bearera'], [' Bearer a'], ['Basic a'], ['']])('%j is no bearer', (value) => {
  expect(credentialsOf(sent('authorization', value)).bearers).toEqual([])
})

test('a second space is part of the token, which is then none', () => {
  expect(credentialsOf(sent('authorization', 'Bearer  a')).bearers).toEqual([' a'])
})

test('a token that is too long is refused as such', () => {
  const token = 'x'.repeat(65_536)
  expect(credentialsOf(sent('authorization', `Bearer ${token}`)).bearers).toEqual([token])
  expect(() => credentialsOf(sent('authorization', `Bearer ${token}x`))).toThrow(
    expect.objectContaining({ code: 'HEADERS_TOO_LARGE' }),
  )
})

test('a token in another header is no bearer', () => {
  expect(credentialsOf(sent('proxy-authorization', 'Bearer a', 'authorization', 'Basic b')).bearers).toEqual(
    [],
  )
})

test('no more than four bearers are tried', () => {
  const headers = Array.from({ length: 10 }, (_, n) => ['authorization', `Bearer ${n}`]).flat()
  expect(credentialsOf(sent(...headers)).bearers).toEqual(['0', '1', '2', '3'])
})

test('the token of a stored session stands beside them', () => {
  const request = sent('zt-session', 't', 'authorization', 'Bearer a')
  expect(credentialsOf(request)).toEqual({ token: 't', bearers: ['a'] })
})

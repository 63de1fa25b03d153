import fc from 'fast-check'
import { expect, test } from 'vitest'
import { isRegistered, localUris, redirectUris } from './redirect-uris.js'

const uris = redirectUris(`${localUris('callback')},https://app.example/cb?x=1`)

test.each([
  'openziti://auth/callback',
  'http://localhost:8080/auth/callback',
  'https://127.0.0.1:65535/auth/callback',
  'https://app.example/cb?x=1',
])('%s is registered', (uri) => {
  expect(isRegistered(uris, uri)).toBe(true)
})

test.each([
  ['no port', 'http://localhost/auth/callback'],
  ['an empty port', 'http://localhost:/auth/callback'],
  ['a pattern as it is', 'http://localhost:*/auth/callback'],
  ['port 0', 'http://localhost:0/auth/callback'],
  ['a port above the highest', 'http://localhost:65536/auth/callback'],
  ['leading zeros', 'http://localhost:0080/auth/callback'],
  ['digits of another script', 'http://localhost:٨٠٨٠/auth/callback'],
  ['a user name before another host', 'http://localhost:80@evil.example/auth/callback'],
  ['a user name', 'http://evil@localhost:8080/auth/callback'],
  ['a path before the path', 'http://localhost:8080/x/auth/callback'],
  ['another host in the port', 'http://localhost:1.evil.example/auth/callback'],
  ['a fragment', 'http://localhost:8080/auth/callback#x'],
  ['an empty fragment', 'http://localhost:8080/auth/callback#'],
  ['a query', 'http://localhost:8080/auth/callback?x'],
  ['a trailing slash', 'http://localhost:8080/auth/callback/'],
  ['a trailing dot', 'http://localhost.:8080/auth/callback'],
  ['another case', 'HTTP://LOCALHOST:8080/auth/callback'],
  ['an encoded path', 'http://localhost:8080/auth%2fcallback'],
  ['dots in the path', 'http://localhost:8080/auth/../auth/callback'],
  ['backslashes', 'http:\\\\localhost:8080\\auth\\callback'],
  ['a line break', 'http://localhost:80\n80/auth/callback'],
  ['space around it', ' http://localhost:8080/auth/callback'],
  ['a suffix', 'openziti://auth/callback.evil.example'],
  ['full-width letters', 'http://ｌocalhost:8080/auth/callback'],
  ['another notation of the address', 'http://2130706433:8080/auth/callback'],
  ['nothing', ''],
])('%s is not', (_, uri) => {
  expect(isRegistered(uris, uri)).toBe(false)
})

const part = fc.oneof(
  fc.constantFrom(
    'http',
    'https',
    '://',
    'localhost',
    '127.0.0.1',
    ':',
    '8080',
    '/auth/callback',
    '@',
    '#',
    '?',
  ),
  fc.constantFrom('%2f', '\\', '/', '.', '..', '*', 'evil.example', 'openziti', '\u3002', '\uff0f', '\t'),
  fc.string({ maxLength: 5 }),
)
const candidate = fc.oneof(
  fc.array(part, { maxLength: 9 }).map((parts) => parts.join('')),
  fc
    .tuple(fc.constantFrom('http://localhost', 'https://127.0.0.1'), fc.array(part, { maxLength: 4 }))
    .map(([start, parts]) => `${start}:${parts.join('')}/auth/callback`),
)

test('whatever is registered leads to the host, port and path of a pattern, in every reading', () => {
  fc.assert(
    fc.property(candidate, (uri) => {
      if (!isRegistered(uris, uri)) return
      const { protocol, hostname, pathname, username, password, hash } = new URL(uri)
      expect([username, password, hash]).toEqual(['', '', ''])
      if (protocol === 'openziti:') return expect(uri).toBe('openziti://auth/callback')
      expect(['http:', 'https:']).toContain(protocol)
      expect(['localhost', '127.0.0.1']).toContain(hostname)
      expect(pathname).toBe('/auth/callback')
    }),
    { numRuns: 5000 },
  )
})

test.each([
  ['a script', 'javascript:alert(1)'],
  ['data', 'data:text/html,x'],
  ['a fragment', 'https://app.example/cb#x'],
  ['a user name', 'https://user@app.example/cb'],
  ['a wildcard in the host', 'https://*.example/cb'],
  ['a wildcard in the path', 'https://app.example/*'],
  ['two wildcards', 'https://app.example:*/:*'],
  ['a wildcard after the path', 'https://app.example/x:*'],
  ['no URI', 'app'],
  ['an empty one', 'https://app.example/cb,'],
  ['space within', 'https://app.example/c b'],
  ['letters that are not ASCII', 'https://exämple.example/cb'],
])('%s cannot be registered', (_, text) => {
  expect(() => redirectUris(text)).toThrow(/^must /)
})

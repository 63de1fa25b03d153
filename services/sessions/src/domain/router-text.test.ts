import { expect, test } from 'vitest'
import { isIdentifier, isShowable, showableMembers } from './router-text.js'

test.each([
  'tls:router.example.org:6262',
  'dtls:[2001:db8::1]:6262',
  'wss:10.0.0.1:443',
  'tcp:db.example.org:5432',
  'udp:127.0.0.1:53',
  'hosted:0f9ad2b1-6a1e-4d6b-9a05-6d6e3b8c1c7e',
  'ws:host:80/path?a=b&c=d',
  'transport',
  '3tOOoPxVYdbRVdPZ8i4A4E',
  '-zK.4cT9',
])('%s is an identifier', (text) => expect(isIdentifier(text)).toBe(true))

test.each([
  '',
  'a b',
  '<script>alert(1)</script>',
  'x" onload="alert(1)',
  "x'y",
  'a`b`',
  'a\nb',
  'a\x1b[31mb',
  'a\x00',
  'über',
  'x'.repeat(501),
])('%j is no identifier', (text) => expect(isIdentifier(text)).toBe(false))

test.each(['', 'v1.1.13', '2025-01-02 03:04:05', "Bob's PC", 'Größe', '本社'])('%j can be shown', (text) =>
  expect(isShowable(text)).toBe(true),
)

test.each(['<b>', 'a\nb', 'a\x00', 'a\x7f', 'a\u009b', 'left\u202eright', '\ud800', 'x'.repeat(501)])(
  '%j cannot be shown',
  (text) => expect(isShowable(text)).toBe(false),
)

test('what cannot be shown is left empty, and the rest stays', () => {
  expect(showableMembers({ os: 'linux', arch: '<img>', port: 1 })).toEqual({ os: 'linux', arch: '', port: 1 })
})

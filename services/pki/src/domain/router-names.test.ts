import { encode, hostName, nameTags, onlyElement, textOf, uriName } from '@overlay/x509'
import { expect, test } from 'vitest'
import { namePatternsIn, routerNames } from './router-names.js'

const own = ['localhost', '127.0.0.1', '::1', 'ctrl.example.org', '10.0.0.5', '2001:db8::5']
const rules = { trustDomain: 'net.example', own, patterns: [] as readonly string[] }
const router = { id: 'r1', name: 'berlin' }
const id = 'spiffe://net.example/router/r1'

const nameOf = (kind: keyof typeof nameTags, text: string) =>
  onlyElement(encode(nameTags[kind], Buffer.from(text, 'latin1')))
const granted = (asked: readonly ReturnType<typeof nameOf>[], patterns: readonly string[] = []) =>
  routerNames(asked, { ...rules, patterns }, router).granted.map(textOf)

test('a router has the hosts that it asks for, and the SPIFFE id of the network', () => {
  const asked = ['berlin.example.org', '*.berlin.example.org', '192.0.2.1', '2001:db8::1'].map(hostName)
  expect(granted(asked)).toEqual([...asked.map(textOf), id])
})

test('loopback names stay, because stock routers ask for them', () => {
  const loopback = ['localhost', '127.0.0.1', '::1']
  expect(granted(loopback.map(hostName))).toEqual([...loopback, id])
})

test.each([
  'ctrl.example.org',
  'CTRL.Example.ORG',
  'ctrl.example.org.',
  '*.example.org',
  '*.EXAMPLE.org.',
  '*.org',
  '10.0.0.5',
  '::ffff:10.0.0.5',
  '2001:DB8:0:0::5',
])('the host %s of the product is left out', (host) => {
  const { leftOut } = routerNames([hostName(host)], rules, router)
  expect(granted([hostName(host)])).toEqual([id])
  expect(leftOut).toHaveLength(1)
})

test.each([
  'ctrl.example.org\0.evil.example',
  '10.0.0.5',
  '0x0a.5',
  '012.0.0.5',
  '167772165',
  'c*.example.org',
  'ctrl.*.org',
  '*',
  '*.*.org',
  '.example.org',
  'ctrl..example.org',
  'ctrl.example.org..',
  'ctrl.example.org:443',
  ' ctrl.example.org',
  'https://ctrl.example.org',
  'xn--a',
  'xn--xn--a--gua.pt',
  '',
])('the DNS name "%s", which could pass for one of the product or is none, is left out', (text) => {
  expect(granted([nameOf('dns', text)])).toEqual([id])
})

test('an IDN of the product is left out in its ASCII form', () => {
  const idn = { ...rules, own: ['bücher.example'] }
  expect(routerNames([hostName('xn--bcher-kva.example')], idn, router).leftOut).toHaveLength(1)
})

test('URIs and mail addresses are left out: the network gives them', () => {
  const asked = [uriName('spiffe://net.example/controller/c1'), nameOf('email', 'admin@example.org')]
  expect(routerNames(asked, rules, router)).toMatchObject({
    granted: [{ tag: nameTags.uri }],
    leftOut: ['spiffe://net.example/controller/c1', 'admin@example.org'],
  })
})

test('a wildcard of the product takes all names below it', () => {
  const wide = { ...rules, own: ['*.api.example.org'] }
  const names = ['x.api.example.org', '*.api.example.org', '*.example.org', 'api.example.com']
  expect(routerNames(names.map(hostName), wide, router).leftOut).toEqual(names.slice(0, 3))
})

test.each<[string, string[], string[]]>([
  ['[name].example.org', ['berlin.example.org', 'paris.example.org'], ['berlin.example.org']],
  ['[id].example.org', ['R1.example.org', 'r2.example.org'], ['R1.example.org']],
  [
    '*.edge.example.org',
    ['a.edge.example.org', '*.edge.example.org', 'edge.example.org'],
    ['a.edge.example.org'],
  ],
  [
    '192.0.2.0/24, 2001:db8:1::/48',
    ['192.0.2.9', '192.0.3.9', '2001:db8:1::1'],
    ['192.0.2.9', '2001:db8:1::1'],
  ],
  ['*.example.org', ['ctrl.example.org', 'localhost', 'x.example.org'], ['localhost', 'x.example.org']],
])('with the patterns %s a router has no other names', (patterns, asked, expected) => {
  expect(granted(asked.map(hostName), namePatternsIn(patterns))).toEqual([...expected, id])
})

test.each(['*', 'a.b', 'berlin x', ''])('the router name "%s" fills no pattern', (name) => {
  const bound = { ...rules, patterns: ['[name].example.org'] }
  const asked = ['x.example.org', 'a.b.example.org', 'example.org'].map(hostName)
  expect(routerNames(asked, bound, { id: 'r1', name }).leftOut).toHaveLength(3)
})

test.each(['c*.example.org', '10.0.0.0/33', 'https://x', '[other].example.org'])(
  'the text "%s" is no pattern',
  (text) => {
    expect(() => namePatternsIn(text)).toThrow(/must be a list of names/)
  },
)

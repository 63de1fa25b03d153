import {
  commonNamesOf,
  derOf,
  type Element,
  encode,
  hostName,
  nameTags,
  objectId,
  sequence,
  tag,
  textOf,
  uriName,
} from '@overlay/x509'
import { expect, test } from 'vitest'
import { hostsToClaim, namePatternsIn, routerNames, serverSubject } from './router-names.js'

const own = ['localhost', '127.0.0.1', '::1', 'ctrl.example.org', '10.0.0.5', '2001:db8::5']
const rules = {
  trustDomain: 'net.example',
  own,
  patterns: [] as readonly string[],
  refused: new Set<string>(),
}
const router = { id: 'r1', name: 'berlin' }
const id = 'spiffe://net.example/router/r1'

const nameOf = (kind: keyof typeof nameTags, text: string) =>
  encode(nameTags[kind], Buffer.from(text, 'latin1'))
const granted = (asked: readonly ReturnType<typeof nameOf>[], patterns: readonly string[] = []) =>
  routerNames(asked, { ...rules, patterns }, router).granted.map(textOf)

test('a router has the names that it requests, and no others', () => {
  const hosts = ['berlin.example.org', '*.berlin.example.org', '192.0.2.1', '2001:db8::1']
  const uris = [
    id,
    'spiffe://x/y',
    'spiffe://sub.net.example/router/r2',
    'https://berlin.example.org:8443/',
    'urn:x:y',
  ]
  const asked = [...hosts.map(hostName), ...uris.map(uriName), nameOf('email', 'a@b.example')]
  expect(granted(asked)).toEqual(asked.map(textOf))
  expect(granted([])).toEqual([])
})

test('loopback names stay, because unmodified routers request them', () => {
  const loopback = ['localhost', '127.0.0.1', '::1']
  expect(granted(loopback.map(hostName))).toEqual(loopback)
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
  expect(granted([hostName(host)])).toEqual([])
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
  expect(granted([nameOf('dns', text)])).toEqual([])
})

test('an IDN of the product is left out in its ASCII form', () => {
  const idn = { ...rules, own: ['bücher.example'] }
  expect(routerNames([hostName('xn--bcher-kva.example')], idn, router).leftOut).toHaveLength(1)
})

test.each([
  'spiffe://net.example/controller/c1',
  'spiffe://net.example/router/r2',
  'spiffe://net.example/router/r1/',
  'spiffe://net.example/identity/i1/apiSession/s1',
  'SPIFFE://NET.example/router/r1',
  'spiffe://net.example:443/router/r1',
  'spiffe://user@net.example/router/r1',
  'spiffe://n%65t.example/router/r1',
  'spiffe:///router/r1',
  'spiffe:net.example/router/r1',
  'https://ctrl.example.org/',
  'wss://CTRL.example.org:443',
  'https://10.0.0.5/',
  'https://user@berlin.example.org/',
  'https:ctrl.example.org',
  '//ctrl.example.org',
  'ctrl.example.org',
  '',
])('the URI "%s", which could pass for one of the network or of the product, is left out', (uri) => {
  expect(granted([uriName(uri)])).toEqual([])
})

const commonName = (text: string): Element =>
  encode(tag.set, sequence(objectId('2.5.4.3'), encode(tag.utf8String, Buffer.from(text))))
const commonNamesAs = (names: readonly string[], patterns: readonly string[] = []) =>
  commonNamesOf(
    serverSubject(
      derOf(sequence(...names.map(commonName))),
      { ...rules, patterns: namePatternsIn(patterns.join()) },
      router,
    ).subject,
  )

test.each([
  ['server'],
  ['berlin.example.org'],
  ['192.0.2.1'],
  ['localhost'],
  ['Edge router 7'],
  ['r1', 'berlin'],
  [],
])('a server certificate keeps the common name %s', (...names) => {
  expect(commonNamesAs(names)).toEqual(names)
})

test.each([
  ['ctrl.example.org'],
  ['CTRL.example.org.'],
  [' ctrl.example.org '],
  ['ctrl。example。org'],
  ['ctrl\u1806。example。org'],
  [`ctrl${'\u034f'.repeat(60)}。example。org`],
  [`${'a'.repeat(63)}。example。org`],
  ['ctrl\u2024example\u2024org'],
  ['ctrl\u1806'],
  ['*.example.org'],
  ['c*.example.org'],
  ['ctrl.example.org\0.evil.example'],
  ['ctrl.example.org:443'],
  ['https://ctrl.example.org'],
  ['10.0.0.5'],
  ['167772165'],
  ['2001:DB8::5'],
  ['ctrl.example.org', 'berlin'],
])('the router id replaces the common name "%s" of a server certificate', (...names) => {
  expect(commonNamesAs(names)).toEqual(['r1'])
})

test('a common name must fit the patterns if it is a host name', () => {
  const patterns = ['[name].example.org']
  expect(commonNamesAs(['berlin.example.org'], patterns)).toEqual(['berlin.example.org'])
  expect(commonNamesAs(['Edge router 7'], patterns)).toEqual(['Edge router 7'])
  for (const name of ['paris.example.org', 'server']) expect(commonNamesAs([name], patterns)).toEqual(['r1'])
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
  expect(granted(asked.map(hostName), namePatternsIn(patterns))).toEqual(expected)
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

test('a name that is refused is left out in all its forms, and a wildcard is a name of its own', () => {
  const refused = { ...rules, refused: new Set(['berlin.example.net', '*.example.com']) }
  const asked = [
    ...['BERLIN.example.net', 'a.berlin.example.net', '*.example.com', 'a.example.com'].map(hostName),
    ...['https://berlin.example.net:443/x', 'spiffe://berlin.example.net/x'].map(uriName),
  ]
  expect(routerNames(asked, refused, router).granted.map(textOf)).toEqual([
    'a.berlin.example.net',
    'a.example.com',
    'spiffe://berlin.example.net/x',
  ])
  const subject = derOf(sequence(commonName('berlin.example.net.')))
  expect(commonNamesOf(serverSubject(subject, refused, router).subject)).toEqual(['r1'])
})

const claimed = (asked: readonly string[], patterns = '', subject: readonly string[] = []) => [
  ...hostsToClaim(
    {
      altNames: asked.map((text) => (text.includes(':/') ? uriName(text) : hostName(text))),
      subjects: [derOf(sequence(...subject.map(commonName)))],
    },
    { ...rules, patterns: namePatternsIn(patterns) },
    router,
  ),
]

test('a router claims all hosts that it would have, in one form, except loopback', () => {
  const asked = [
    'Berlin.Example.net.',
    'localhost',
    '127.0.0.1',
    '*.example.net',
    '::ffff:192.0.2.1',
    'https://web.example.net:8443/',
    'spiffe://other.example/x',
    'ctrl.example.org',
  ]
  expect(claimed(asked, '', ['server', 'Edge router 7'])).toEqual([
    'berlin.example.net',
    '*.example.net',
    '192.0.2.1',
    'web.example.net',
    'server',
  ])
})

test('patterns that name a host or the router allow it regardless of other holders, others do not', () => {
  const patterns =
    'lb.example.net, *.example.net, *.[name].example.net, [id].example.net, 192.0.2.1, 192.0.2.0/24'
  const asked = ['lb.example.net', 'r1.example.net', '*.berlin.example.net', '192.0.2.1', '192.0.2.2']
  expect(claimed([...asked, 'x.example.net', '*.example.net'], patterns)).toEqual([
    '192.0.2.2',
    'x.example.net',
  ])
  expect(granted(asked.map(hostName), namePatternsIn(patterns))).toEqual(asked)
})

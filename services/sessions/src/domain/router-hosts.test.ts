import { expect, test } from 'vitest'
import { hostsOfListeners } from './router-hosts.js'

test.each([
  ['tls:edge.example.org:3022', 'edge.example.org'],
  ['tls://EDGE.example.org:3022', 'edge.example.org'],
  ['wss://edge.example.org:443/path', 'edge.example.org'],
  ['wss://edge.example.org', 'edge.example.org'],
  ['edge.example.org:3022', 'edge.example.org'],
  ['edge:3022', 'edge'],
  ['edge.example.org', 'edge.example.org'],
  ['tls:192.0.2.7:3022', '192.0.2.7'],
  ['192.0.2.7:3022', '192.0.2.7'],
  ['tls:[2001:db8::1]:3022', '2001:db8::1'],
  ['[2001:db8::1]:3022', '2001:db8::1'],
])('the host of %s', (address, host) => {
  expect(hostsOfListeners([address])).toEqual([host])
})

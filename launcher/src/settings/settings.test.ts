import { networkInterfaces } from 'node:os'
import { expect, test } from 'vitest'
import { readArguments } from '../product/arguments.js'
import { readLauncherSettings } from './settings.js'

const hasIpv6 = Object.values(networkInterfaces()).some((list) =>
  list?.some(({ family }) => family === 'IPv6'),
)
const everywhere = hasIpv6 ? '[::]' : '0.0.0.0'

test.each([
  ['a loopback name: the loopback interface', 'localhost:1280', undefined, '127.0.0.1:1280'],
  ['a name below localhost: the same', 'a.localhost:1', undefined, '127.0.0.1:1'],
  ['the loopback address: the same', '127.0.0.1:5', undefined, '127.0.0.1:5'],
  ['the IPv6 loopback address: that one', '[::1]:5', undefined, '[::1]:5'],
  ['any other name: all interfaces, same port', 'ctrl.example.org:443', undefined, `${everywhere}:443`],
  ['a set address', 'ctrl.example.org:443', '10.0.0.1:8443', '10.0.0.1:8443'],
])('where the gateway listens: %s', (_rule, address, listen, expected) => {
  expect(readLauncherSettings({ OVERLAY_ADDRESS: address, OVERLAY_LISTEN: listen }).listen).toBe(expected)
})

test('all components share a process unless they are separated or scaled', () => {
  const one = { gateway: 1, identity: 1, pki: 1, policy: 1, sessions: 1 }
  const layoutOf = (...args: string[]) => readArguments(args).layout
  expect(layoutOf()).toEqual({ replicas: 1 })
  expect(layoutOf('--replicas', '3')).toEqual({ replicas: 3 })
  expect(layoutOf('--separate')).toEqual({ separate: one })
  expect(layoutOf('--scale', 'gateway=2,policy=3')).toEqual({ separate: { ...one, gateway: 2, policy: 3 } })
})

test.each(['0', '17', 'two'])('%s replicas are refused', (count) => {
  expect(() => readArguments(['--replicas', count])).toThrow(`'${count}'`)
})

test('replicas with all components are not separate', () => {
  expect(() => readArguments(['--replicas', '2', '--separate'])).toThrow('--replicas')
})

test.each(['router=2', 'gateway', 'gateway=0', 'gateway=99', 'gateway=two'])('%s is refused', (item) => {
  expect(() => readArguments(['--scale', item])).toThrow(`'${item}'`)
})

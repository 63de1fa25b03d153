import { expect, test } from 'vitest'
import { LONGEST_ADDRESS_LIST, MOST_INTERFACES } from '../limits.js'
import { interfacesOf, type ReportedInterface } from './network-interfaces.js'

const reported = (members: Partial<ReportedInterface> = {}): ReportedInterface => ({
  ...{ name: 'eth0', hardwareAddress: '02:42:ac:11:00:02', mtu: 1500n, index: 2n, flags: 51n },
  addresses: ['10.0.0.1/24'],
  ...members,
})

test('flags are shown by name, and no addresses as null', () => {
  expect(interfacesOf([reported({ addresses: [] }), reported({ name: 'lo', flags: 5n })])).toEqual([
    {
      ...{ name: 'eth0', hardwareAddress: '02:42:ac:11:00:02', mtu: 1500, index: 2, addresses: null },
      ...{ isUp: true, isBroadcast: true, isLoopback: false, isMulticast: true, isRunning: true },
    },
    {
      ...{
        name: 'lo',
        hardwareAddress: '02:42:ac:11:00:02',
        mtu: 1500,
        index: 2,
        addresses: ['10.0.0.1/24'],
      },
      ...{ isUp: true, isBroadcast: false, isLoopback: true, isMulticast: false, isRunning: false },
    },
  ])
})

test('what a router reports is bounded, and refused if it cannot be shown', () => {
  const addresses = Array.from({ length: 1000 }, (_, at) => `10.0.0.${at}`)
  const shown = interfacesOf(Array.from({ length: 1000 }, () => reported({ addresses })))
  expect(shown).toHaveLength(MOST_INTERFACES)
  expect(shown?.[0]?.addresses).toHaveLength(LONGEST_ADDRESS_LIST)
  expect(interfacesOf([reported({ name: '<b>' })])).toBeUndefined()
  expect(interfacesOf([reported({ mtu: 2n ** 60n })])).toBeUndefined()
})

import type { NetworkInterface } from '@overlay/model'
import { LONGEST_ADDRESS_LIST, MOST_INTERFACES } from '../limits.js'
import { isShowable } from './router-text.js'

/** An interface as a router reports it. */
export interface ReportedInterface {
  readonly name: string
  readonly hardwareAddress: string
  readonly mtu: bigint
  readonly index: bigint
  readonly flags: bigint
  readonly addresses: readonly string[]
}

/** wire: bits of `flags`. */
const bits = { isUp: 1n, isBroadcast: 2n, isLoopback: 4n, isMulticast: 16n, isRunning: 32n } as const

/** The first interfaces of a report, as they are shown. Undefined: one cannot be shown. */
export function interfacesOf(
  reported: readonly ReportedInterface[],
): readonly NetworkInterface[] | undefined {
  const some = reported.slice(0, MOST_INTERFACES)
  const isValid = some.every(
    ({ name, hardwareAddress, mtu, index, addresses }) =>
      [name, hardwareAddress, ...addresses.slice(0, LONGEST_ADDRESS_LIST)].every(isShowable) &&
      [mtu, index].every((number) => Number.isSafeInteger(Number(number))),
  )
  return isValid ? some.map(shown) : undefined
}

const shown = ({
  name,
  hardwareAddress,
  mtu,
  index,
  flags,
  addresses,
}: ReportedInterface): NetworkInterface => ({
  ...{ name, hardwareAddress, mtu: Number(mtu), index: Number(index) },
  addresses: addresses.length > 0 ? addresses.slice(0, LONGEST_ADDRESS_LIST) : null,
  isUp: (flags & bits.isUp) !== 0n,
  isBroadcast: (flags & bits.isBroadcast) !== 0n,
  isLoopback: (flags & bits.isLoopback) !== 0n,
  isMulticast: (flags & bits.isMulticast) !== 0n,
  isRunning: (flags & bits.isRunning) !== 0n,
})

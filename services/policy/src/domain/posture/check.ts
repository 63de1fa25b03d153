import type { postureCheck, RowOf } from '@overlay/model'

/** A posture check as its changes tell it. */
export type Check = Omit<RowOf<typeof postureCheck>, 'createdAt' | 'updatedAt'> & {
  readonly createdAt: string
  readonly updatedAt: string
}

/** Addresses, hashes and fingerprints are the same however they are written: with colons, in capitals. */
export const cleanHex = (text: string): string => text.toLowerCase().replace(/[^a-f\d]+/g, '')

/** wire: no time-out is told as this. */
export const NO_TIMEOUT = -1

/** As clients see it. wire: a fingerprint that is not asked for is left out. */
export const processOf = (
  check: Pick<Check, 'process.osType' | 'process.path' | 'process.hashes' | 'process.signerFingerprint'>,
) => ({
  osType: check['process.osType'],
  path: check['process.path'],
  hashes: check['process.hashes'],
  ...(check['process.signerFingerprint'] && { signerFingerprint: check['process.signerFingerprint'] }),
})

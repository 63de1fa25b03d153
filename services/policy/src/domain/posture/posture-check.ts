import type { PlainOf, postureCheck } from '@overlay/model'

/** A posture check as its changes carry it. */
export type Check = PlainOf<typeof postureCheck>

/** Addresses, hashes and fingerprints compare equal with colons and without, in capitals or not. */
export const cleanHex = (text: string): string => text.toLowerCase().replace(/[^a-f\d]+/g, '')

/** wire: the value of `timeout` and `timeoutSeconds` for no timeout. */
export const NO_TIMEOUT = -1

/** In wire shape. wire: a fingerprint that is not set is left out. */
export const processOf = (
  check: Pick<Check, 'process.osType' | 'process.path' | 'process.hashes' | 'process.signerFingerprint'>,
) => ({
  osType: check['process.osType'],
  path: check['process.path'],
  hashes: check['process.hashes'],
  ...(check['process.signerFingerprint'] && { signerFingerprint: check['process.signerFingerprint'] }),
})

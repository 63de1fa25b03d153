import type { X509Certificate } from 'node:crypto'
import { Fault } from '@overlay/rpc'
import { fingerprintOf, isWithin } from '../domain/chain.js'
import type { NewAuthenticator } from '../store/authenticators.js'
import type { KnownCa } from '../store/known-cas.js'
import type { Authorities } from './authorities.js'
import { certificatesOf } from './presented.js'

export type Proof = Pick<
  NewAuthenticator,
  'method' | 'username' | 'password' | 'certPem' | 'fingerprint' | 'caId'
>

export const noProof = { username: null, password: null, certPem: null, fingerprint: null, caId: null }

/** By what a certificate proves who somebody is. `ca`: whose it is, if it is not our own. */
export const certificateProof = ({
  leaf,
  ca,
}: {
  readonly leaf: X509Certificate
  readonly ca?: KnownCa
}): Proof => ({
  ...noProof,
  method: 'cert',
  certPem: leaf.toString(),
  fingerprint: fingerprintOf(leaf),
  caId: ca?.id ?? null,
})

/** The presented certificate, if it may enroll with one of these authorities. */
export function vouchedFor(
  authorities: Authorities,
  cas: readonly KnownCa[],
  peerCertificates: readonly Uint8Array[],
): { readonly leaf: X509Certificate; readonly ca: KnownCa } {
  const now = new Date()
  const presented = certificatesOf(peerCertificates)
  // differs: an authority that nobody has verified vouches for nobody
  const verified = cas.filter(({ isVerified }) => isVerified)
  const vouched = authorities.vouching(verified, presented, now)
  const [leaf] = presented
  if (!leaf || !vouched || !isWithin(leaf, now)) throw new Fault('CERT_FAILED_VALIDATION')
  return { leaf, ca: vouched.ca }
}

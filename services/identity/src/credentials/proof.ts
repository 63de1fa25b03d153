import type { X509Certificate } from 'node:crypto'
import { type Context, Fault, invalid } from '@overlay/rpc'
import { fingerprintOf } from '@overlay/x509'
import { isWithin } from '../domain/chain.js'
import { brokenByName, type PasswordRules, type SoundPassword, soundPassword } from '../domain/passwords.js'
import type { NewAuthenticator } from '../store/authenticators.js'
import type { CaCopy } from '../store/cas.js'
import type { Authorities } from './authorities.js'
import { certificatesOf } from './certificates.js'

/** The members of an authenticator that prove an identity. */
export type Proof = Pick<
  NewAuthenticator,
  'method' | 'username' | 'password' | 'certPem' | 'fingerprint' | 'caId'
>

export const noProof = { username: null, password: null, certPem: null, fingerprint: null, caId: null }

/** `ca`: the authority that issued the certificate, if it is not the network. */
export const certificateProof = ({
  leaf,
  ca,
}: {
  readonly leaf: X509Certificate
  readonly ca?: CaCopy
}): Proof => ({
  ...noProof,
  method: 'cert',
  certPem: leaf.toString(),
  fingerprint: fingerprintOf(leaf),
  caId: ca?.id ?? null,
})

/** The presented certificate and its issuer, if it may enroll with one of these authorities. */
export async function enrollingCertificate(
  authorities: Authorities,
  cas: readonly CaCopy[],
  peerCertificates: readonly Uint8Array[],
  context: Context,
): Promise<{ readonly leaf: X509Certificate; readonly ca: CaCopy }> {
  const now = new Date()
  const presented = certificatesOf(peerCertificates)
  // differs: an authority that is not verified certifies no client
  const verified = cas.filter(({ isVerified }) => isVerified)
  const ca = await authorities.issuerOf(verified, presented, context, now)
  const [leaf] = presented
  if (!leaf || !ca || !isWithin(leaf, now)) throw new Fault('CERT_FAILED_VALIDATION')
  return { leaf, ca }
}

export function refuseUsername(username: string): void {
  const reason = brokenByName(username)
  if (reason) throw invalid('username', reason, username)
}

/** Refuses a new password that the auth policy does not allow. differs: it is never sent back. */
export const allowedPassword = (password: string, rules: PasswordRules): SoundPassword =>
  soundPassword(password, rules, (reason) => invalid('password', reason, ''))

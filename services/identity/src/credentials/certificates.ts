import { X509Certificate } from 'node:crypto'
import { Fault, invalid, withoutPrivateKeys } from '@overlay/rpc'
import { pemBlocksIn } from '@overlay/x509'
import { CERTIFICATE_BYTES, CHAIN_CERTIFICATES } from '../limits.js'

/**
 * The presented certificates, leaf first, as many as a chain can have. The first one that is not readable ends the list,
 * and with it the chain.
 */
export function certificatesOf(presented: readonly Uint8Array[]): X509Certificate[] {
  const certificates: X509Certificate[] = []
  for (const der of presented.slice(0, CHAIN_CERTIFICATES)) {
    if (der.length > CERTIFICATE_BYTES) break
    try {
      certificates.push(new X509Certificate(der))
    } catch {
      return certificates
    }
  }
  return certificates
}

/** The certificates in the text, each as PEM. Skips blocks of other kinds. */
export const certificateBlocksIn = (pem: string): readonly string[] =>
  [...pemBlocksIn(pem)].filter(({ label }) => label === 'CERTIFICATE').map(({ text }) => text)

/** The one certificate in the text, which is stored as it is and shown. */
export function onlyCertificate(pem: string, refusal = unparsable): X509Certificate {
  // differs: a key that was pasted with its certificate is not stored
  if (withoutPrivateKeys(pem) !== pem) throw invalid('certPem', 'certPem must not contain a private key')
  const [first, ...more] = certificateBlocksIn(pem)
  if (first === undefined || more.length > 0) throw refusal('exactly one certificate is expected')
  try {
    return new X509Certificate(first)
  } catch (err) {
    throw refusal('the block is not a certificate', err)
  }
}

const unparsable = (reason: string, cause?: unknown): Fault =>
  new Fault('COULD_NOT_PARSE_PEM_BLOCK', reason, cause)

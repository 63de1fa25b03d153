import { X509Certificate } from 'node:crypto'
import { writeChanges } from '@overlay/platform/change-log'
import { Fault } from '@overlay/rpc'
import {
  commonNameOf,
  DerError,
  isIssuedBy,
  KeyError,
  partsOfCertificate,
  pemBlocksIn,
  signatureSchemeOf,
  soundKey,
} from '@overlay/x509'
import { lockCa, markVerified } from '../store/cas.js'
import type { Deps, PkiMethods } from './deps.js'

/**
 * Accepts an authority for a certificate that it has signed and whose common name is the verification token: proof of
 * its key. The steps are the order of checks.
 */
export const verifyCa =
  ({ changeLog, now }: Deps): PkiMethods['verifyCa'] =>
  async ({ id, certificatePem }, context) => {
    const position = await writeChanges(changeLog, context, async (tx) => {
      const ca = await lockCa(tx, id)
      if (!ca) throw new Fault('NOT_FOUND') // wire: without a cause
      if (ca.isVerified) throw new Fault('CA_ALREADY_VERIFIED')
      const { certificate, commonName } = parseCertificate(certificatePem)
      if (commonName !== ca.verificationToken) throw new Fault('INVALID_COMMON_NAME')
      const objection = objectionTo(certificate, new X509Certificate(ca.certPem), now())
      if (objection) throw new Fault('CERTIFICATE_FAILED_VALIDATION', objection)
      return markVerified(tx, ca)
    })
    return { id, position }
  }

/** wire: what follows the first block is ignored. */
function parseCertificate(text: string): {
  readonly certificate: X509Certificate
  readonly commonName: string
} {
  const { value: block } = pemBlocksIn(text).next()
  if (!block) throw new Fault('COULD_NOT_PARSE_BODY')
  if (block.label !== 'CERTIFICATE')
    throw new Fault('EXPECTED_PEM_CERTIFICATE', `expected a block of type CERTIFICATE, got ${block.label}`)
  try {
    const certificate = new X509Certificate(block.text)
    return { certificate, commonName: commonNameOf(partsOfCertificate(certificate).subject) }
  } catch (err) {
    throw new Fault('COULD_NOT_PARSE_DER_BLOCK', undefined, err)
  }
}

function objectionTo(
  certificate: X509Certificate,
  authority: X509Certificate,
  now: Date,
): string | undefined {
  if (!isIssuedBy(certificate.toString(), authority.toString()))
    return 'the certificate is not signed by the authority'
  const isValid = [certificate, authority].every(
    ({ validFrom, validTo }) => new Date(validFrom) <= now && now <= new Date(validTo),
  )
  if (!isValid) return 'the certificate or the authority is out of date'
  return weaknessOf(certificate, authority)
}

/** differs: the original verifies authorities by which no login can succeed. */
function weaknessOf(certificate: X509Certificate, authority: X509Certificate): string | undefined {
  try {
    const { publicKey, signature } = partsOfCertificate(certificate)
    for (const key of [publicKey, partsOfCertificate(authority).publicKey]) soundKey(key)
    return signatureSchemeOf(signature) ? undefined : `unsupported signature algorithm ${signature.id}`
  } catch (err) {
    if (err instanceof KeyError) return err.message
    if (err instanceof DerError) return 'could not parse the certificate or the authority'
    throw err
  }
}

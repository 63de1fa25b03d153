import { X509Certificate } from 'node:crypto'
import { Fault, type Methods, type PkiServiceService } from '@overlay/rpc'
import { writeChanges } from '@overlay/store/change-log'
import {
  allowsUsage,
  commonNameOf,
  DerError,
  hasIssued,
  KeyError,
  LONGEST_AUTHORITY_KEY,
  partsOfCertificate,
  pathLengthOf,
  pemBlocksIn,
  signatureSchemeOf,
  soundKey,
} from '@overlay/x509'
import { buildChain } from '../domain/build-chain.js'
import { MAX_PATH } from '../limits.js'
import { findCa, lockCa, markVerified } from '../store/cas.js'
import type { MethodDeps } from './method-deps.js'

/** The authorities of other networks. */
export const caMethods = ({ changeLog, issuer, now }: Pick<MethodDeps, 'changeLog' | 'issuer' | 'now'>) =>
  ({
    /** The token for clients that have a certificate of the authority. */
    async getCaJwt({ id }) {
      if (!(await findCa(changeLog.db, id))) throw new Fault('NOT_FOUND') // wire: without a cause
      return { jwt: await issuer.caJwt(id) }
    },

    /**
     * Accepts an authority for a certificate whose common name is the verification token: proof of its key. The authority
     * has signed it, or (differs) an intermediate of the authority that follows it. The steps are the order of checks.
     */
    async verifyCa({ id, certificatePem }, context) {
      const position = await writeChanges(changeLog, context, async (tx) => {
        const ca = await lockCa(tx, id)
        if (!ca) throw new Fault('NOT_FOUND') // wire: without a cause
        if (ca.isVerified) throw new Fault('CA_ALREADY_VERIFIED')
        const { certificate, others } = parseCertificates(certificatePem)
        if (nameOf(certificate) !== ca.verificationToken) {
          const isBehind = others.some((other) => nameOf(other) === ca.verificationToken)
          throw new Fault('INVALID_COMMON_NAME', isBehind ? wrongOrder : undefined)
        }
        const objection = objectionTo(certificate, others, new X509Certificate(ca.certPem), now())
        if (objection) throw new Fault('CERTIFICATE_FAILED_VALIDATION', objection)
        return markVerified(tx, ca)
      })
      return { id, position }
    },
  }) satisfies Partial<Methods<PkiServiceService>>

const wrongOrder =
  'the certificate whose common name is the verification token must be the first one, intermediates follow it'

/** The certificate of the first block, and those that follow it. wire: other blocks behind it are ignored. */
function parseCertificates(text: string): {
  readonly certificate: X509Certificate
  readonly others: readonly X509Certificate[]
} {
  const [block, ...behind] = pemBlocksIn(text)
  if (!block) throw new Fault('COULD_NOT_PARSE_BODY')
  if (block.label !== 'CERTIFICATE')
    throw new Fault('EXPECTED_PEM_CERTIFICATE', `expected a block of type CERTIFICATE, got ${block.label}`)
  const others = behind.filter(({ label }) => label === 'CERTIFICATE').slice(0, MAX_PATH - 1)
  return { certificate: parse(block.text), others: others.map(({ text }) => parse(text)) }
}

function parse(pem: string): X509Certificate {
  try {
    const certificate = new X509Certificate(pem)
    nameOf(certificate)
    return certificate
  } catch (err) {
    throw new Fault('COULD_NOT_PARSE_DER_BLOCK', undefined, err)
  }
}

const nameOf = (certificate: X509Certificate): string => commonNameOf(partsOfCertificate(certificate).subject)

function objectionTo(
  certificate: X509Certificate,
  others: readonly X509Certificate[],
  authority: X509Certificate,
  now: Date,
): string | undefined {
  const { chain: path, isComplete } = buildChain(
    certificate,
    others.filter((one) => one.ca),
    {
      isComplete: (last) => hasIssued(authority, last),
    },
  )
  if (!isComplete)
    return 'neither the authority nor an intermediate that follows the certificate has signed it'
  const isValid = [...path, authority].every(
    ({ validFrom, validTo }) => new Date(validFrom) <= now && now <= new Date(validTo),
  )
  if (!isValid) return 'the certificate, an intermediate or the authority is out of date'
  return weaknessOf(path, authority)
}

/** differs: the original verifies authorities by which no login can succeed. */
function weaknessOf(path: readonly X509Certificate[], authority: X509Certificate): string | undefined {
  try {
    const links = path.map(partsOfCertificate)
    for (const { publicKey } of links) soundKey(publicKey)
    soundKey(partsOfCertificate(authority).publicKey, LONGEST_AUTHORITY_KEY)
    for (const { signature } of links)
      if (!signatureSchemeOf(signature)) return `unsupported signature algorithm ${signature.id}`
    const intermediates = links.slice(1)
    return intermediates.every(mayCertify) ? undefined : 'an intermediate may not sign this certificate'
  } catch (err) {
    if (err instanceof KeyError) return err.message
    if (err instanceof DerError) return 'could not parse the certificate, an intermediate or the authority'
    throw err
  }
}

const mayCertify = (intermediate: ReturnType<typeof partsOfCertificate>, below: number): boolean =>
  allowsUsage(intermediate, 'keyCertSign') && below <= (pathLengthOf(intermediate) ?? below)

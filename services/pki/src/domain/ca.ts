import { X509Certificate } from 'node:crypto'
import { type Claim, claimMembers } from '@overlay/model'
import {
  DerError,
  fingerprintOf,
  KeyError,
  LONGEST_AUTHORITY_KEY,
  partsOfCertificate,
  pemBlocksIn,
  soundKey,
} from '@overlay/x509'

/** Why an authority is refused, and the member at fault. */
export class CaError extends Error {
  override readonly name = 'CaError'

  constructor(
    readonly field: string,
    message: string,
  ) {
    super(message)
  }
}

/** The fingerprint of the first certificate of the text, which must be one of an authority. */
export function authorityFingerprint(pem: string): string {
  const blocks = [...pemBlocksIn(pem)]
  if (blocks.length === 0) throw new CaError('certPem', 'could not parse block #1')
  const [authority] = blocks.map(({ text, label }, i) => {
    if (label !== 'CERTIFICATE') throw new CaError('certPem', `block #${i + 1} is not a certificate`)
    const certificate = parse(text)
    if (!certificate) throw new CaError('certPem', `could not parse block #${i + 1}`)
    refuseWeakKey(certificate, i + 1)
    return certificate
  })
  if (!authority?.ca) throw new CaError('certPem', 'certificate is not a CA')
  return fingerprintOf(authority)
}

function parse(pem: string): X509Certificate | undefined {
  try {
    return new X509Certificate(pem)
  } catch {
    return undefined
  }
}

function refuseWeakKey(certificate: X509Certificate, block: number): void {
  try {
    soundKey(partsOfCertificate(certificate).publicKey, LONGEST_AUTHORITY_KEY)
  } catch (err) {
    if (err instanceof DerError) throw new CaError('certPem', `could not parse block #${block}`)
    if (!(err instanceof KeyError)) throw err
    // differs: the original takes keys of any strength
    throw new CaError('certPem', `certificate of block #${block}: ${err.message}`)
  }
}

/** wire: stands for an empty format. */
export const defaultNameFormat = '[caName]-[commonName]'

const matchersOf: Readonly<Record<Claim['location'], readonly Claim['matcher'][]>> = {
  COMMON_NAME: ['ALL', 'PREFIX', 'SUFFIX'],
  SAN_EMAIL: ['ALL', 'PREFIX', 'SUFFIX'],
  SAN_URI: ['ALL', 'SCHEME'],
}

/** differs: refuses a claim that no certificate can have when it is written, not at every enrollment. */
export function checkClaim(claim: Claim): void {
  for (const member of claimMembers)
    if (claim[member] === null) throw new CaError(`externalIdClaim.${member}`, `${member} is required`)
  const { location, matcher, matcherCriteria, parser, parserCriteria } = claim
  if (!matchersOf[location].includes(matcher))
    throw new CaError('externalIdClaim.matcher', `matcher ${matcher} can not be used with ${location}`)
  if (matcher !== 'ALL' && matcherCriteria === '')
    throw new CaError('externalIdClaim.matcherCriteria', `matcher ${matcher} needs criteria`)
  if (parser === 'SPLIT' && parserCriteria === '')
    throw new CaError('externalIdClaim.parserCriteria', 'parser SPLIT needs criteria')
}

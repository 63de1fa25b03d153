import type { KeyObject, X509Certificate } from 'node:crypto'
import { isIP } from 'node:net'
import {
  allowsPurpose,
  allowsUsage,
  type CertificateParts,
  DerError,
  extensionIds,
  extensionOf,
  KeyError,
  LONGEST_AUTHORITY_KEY,
  partsOfCertificate,
  pathLengthOf,
  signatureSchemeOf,
  soundKey,
} from '@overlay/x509'
import { describeKey, onOneLine } from '../domain/describe-key.js'
import { ProvidedKeyError } from './read-key-files.js'

/** A certificate and where it is from, for messages. */
export interface Subject {
  readonly certificate: X509Certificate
  readonly where: string
}

/** The subject of a certificate in one line. */
export const subjectOf = ({ subject }: X509Certificate): string => `'${onOneLine(subject)}'`

/** Without the rules for authorities, whose violations have messages of their own. */
export const hasSigned = (issuer: X509Certificate, certificate: X509Certificate): boolean =>
  certificate.issuer === issuer.subject && certificate.verify(issuer.publicKey)

export const isSelfSigned = (certificate: X509Certificate): boolean => hasSigned(certificate, certificate)

/** Throws unless each authority of a chain may stand at its place. `chain`: from the leaf's issuer to the root. */
export function checkAuthorities(chain: readonly X509Certificate[], where: string, now: Date): void {
  chain.forEach((certificate, below) => {
    const subject = { certificate, where }
    checkAuthority(subject, now)
    const limit = pathLengthOf(partsOf(subject))
    if (limit !== undefined && limit < below)
      throw problem(
        subject,
        `allows ${limit} authorities below it, and there ${below === 1 ? 'is one' : `are ${below}`}`,
        'take one with a longer path length',
      )
  })
}

function checkAuthority(subject: Subject, now: Date): void {
  const { certificate } = subject
  checkDates(subject, now)
  const parts = partsOf(subject)
  checkStrength(subject, parts)
  if (!allowsUsage(parts, 'keyCertSign'))
    throw problem(subject, 'has a key usage without certificate signing', 'take one with keyCertSign')
  if (!certificate.ca)
    throw problem(subject, 'is not an authority', 'take a certificate with basicConstraints CA:TRUE')
  if (!allowsPurpose(parts, 'serverAuth') || !allowsPurpose(parts, 'clientAuth'))
    throw problem(
      subject,
      'restricts its purposes to others than TLS servers and clients',
      'take one with both purposes, or without extended key usage',
    )
}

/** Throws unless a certificate can be issued with this authority. */
export function checkSigner(subject: Subject): void {
  if (!extensionOf(partsOf(subject).extensions, extensionIds.subjectKeyId))
    throw problem(
      subject,
      'has no subject key identifier',
      'issue it again with subjectKeyIdentifier=hash: certificates below it name it',
    )
}

/** Throws unless TLS servers with these hosts can use the certificate. */
export function checkServer(subject: Subject, hosts: readonly string[], now: Date): void {
  const { certificate } = subject
  checkDates(subject, now)
  const parts = partsOf(subject)
  checkStrength(subject, parts)
  if (isSelfSigned(certificate))
    throw problem(subject, 'has signed itself', 'take one of an authority, with the authority in ca.crt')
  if (!allowsPurpose(parts, 'serverAuth'))
    throw problem(subject, 'is not for TLS servers', 'take one with the extended key usage serverAuth')
  if (!allowsUsage(parts, 'digitalSignature'))
    throw problem(subject, 'has a key usage without digital signature', 'take one with digitalSignature')
  const missing = hosts.filter((host) => !isFor(certificate, host))
  if (missing.length > 0)
    throw problem(
      subject,
      `lacks ${missing.join(' and ')}, where clients and routers connect (OVERLAY_ADDRESS, OVERLAY_CTRL_ADDRESS)`,
      'issue it with these names, or change the addresses',
    )
}

const isFor = (certificate: X509Certificate, host: string): boolean =>
  (isIP(host) ? certificate.checkIP(host) : certificate.checkHost(host, { subject: 'never' })) !== undefined

/** Throws if the servers' key cannot sign enrollment tokens. */
export function checkServerKey(key: KeyObject, where: string): void {
  if (key.asymmetricKeyType !== 'rsa' && !isP256(key))
    throw new ProvidedKeyError(
      where,
      `${describeKey(key)} cannot sign enrollment tokens, which the servers' key does`,
      'use RSA, or P-256',
    )
}

/** Throws if the key cannot sign tokens of OpenID Connect. */
export function checkTokenKey(key: KeyObject, where: string): void {
  if (key.asymmetricKeyType !== 'rsa')
    throw new ProvidedKeyError(
      where,
      `${describeKey(key)} cannot sign tokens of OpenID Connect: clients verify RS256 only`,
      'use RSA of at least 2048 bits',
    )
}

/** Throws if the key cannot sign tokens of sessions. */
export function checkSessionKey(key: KeyObject, where: string): void {
  if (!isP256(key))
    throw new ProvidedKeyError(where, `${describeKey(key)} cannot sign tokens of sessions`, 'use P-256')
}

export const isP256 = ({ asymmetricKeyDetails }: KeyObject): boolean =>
  asymmetricKeyDetails?.namedCurve === 'prime256v1'

function checkDates(subject: Subject, now: Date): void {
  const { validFrom, validTo } = subject.certificate
  const [from, to] = [new Date(validFrom), new Date(validTo)]
  if (to <= now) throw problem(subject, `has expired on ${dayOf(to)}`, 'renew it')
  if (from > now)
    throw problem(
      subject,
      `is not valid before ${from.toISOString()}`,
      'wait until then, or check the clock of this machine',
    )
}

const dayOf = (time: Date): string => time.toISOString().slice(0, 10)

function checkStrength(subject: Subject, { publicKey, signature }: CertificateParts): void {
  try {
    soundKey(publicKey, LONGEST_AUTHORITY_KEY)
  } catch (err) {
    if (!(err instanceof KeyError)) throw err
    throw problem(subject, `has a key that is not accepted (${err.message})`, 'issue it with a stronger key')
  }
  // the signature of a root proves nothing: its key is trusted
  if (!signatureSchemeOf(signature) && !isSelfSigned(subject.certificate))
    throw problem(subject, 'is signed with SHA-1 or another weak algorithm', 'issue it with SHA-256')
}

function partsOf(subject: Subject): CertificateParts {
  try {
    return partsOfCertificate(subject.certificate)
  } catch (err) {
    if (!(err instanceof DerError)) throw err
    throw problem(subject, 'is not valid DER', 'issue it again')
  }
}

const problem = ({ certificate, where }: Subject, text: string, remedy: string): ProvidedKeyError =>
  new ProvidedKeyError(where, `the certificate of ${subjectOf(certificate)} ${text}`, remedy)

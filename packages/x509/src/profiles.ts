import { hostName } from './alt-names.js'
import type { Element } from './der.js'
import { altNames, authority, noAuthority, purposes, subjectKeyId, usages } from './issued-extensions.js'
import {
  type CertifiedKey,
  forYears,
  keyIdOf,
  publicKeyOf,
  type Signer,
  selfSigner,
  signCertificate,
  type Validity,
} from './signer.js'
import { ownName } from './subject.js'

interface AuthorityProfile {
  /** PKCS#8, PEM. */
  readonly privateKey: string
  readonly commonName: string
  readonly now: Date
  readonly signer?: Signer | undefined // absent: it signs itself
  /** The number of authorities that may follow below. Absent: any number. */
  readonly pathLength?: number | undefined
  /** Further extensions. */
  readonly extensions?: readonly Element[]
}

/** Valid for ten years. */
export async function certifyAuthority({
  privateKey,
  commonName,
  now,
  signer,
  pathLength,
  extensions = [],
}: AuthorityProfile): Promise<CertifiedKey> {
  const subject = ownName(commonName)
  const publicKey = publicKeyOf(privateKey)
  const pem = await signCertificate(signer ?? selfSigner(subject, privateKey), {
    subject,
    publicKey,
    validity: forYears(10, now),
    extensions: [
      authority(pathLength),
      usages('digitalSignature', 'keyCertSign', 'crlSign'),
      ...extensions,
      subjectKeyId(keyIdOf(publicKey)),
    ],
  })
  return { pem, privateKey }
}

interface EndpointProfile {
  /** PKCS#8, PEM. */
  readonly privateKey: string
  readonly commonName: string
  /** DNS names and IP addresses. */
  readonly hosts: readonly string[]
  readonly validity: Validity
}

/** For both sides of TLS connections. */
export async function certifyEndpoint(
  signer: Signer,
  { privateKey, commonName, hosts, validity }: EndpointProfile,
): Promise<CertifiedKey> {
  const publicKey = publicKeyOf(privateKey)
  const pem = await signCertificate(signer, {
    subject: ownName(commonName),
    publicKey,
    validity,
    extensions: [
      noAuthority,
      usages('digitalSignature'),
      purposes('serverAuth', 'clientAuth'),
      altNames(hosts.map(hostName)),
      subjectKeyId(keyIdOf(publicKey)),
    ],
  })
  return { pem, privateKey }
}

import { hostName } from './alt-names.js'
import { altNames, authority, noAuthority, purposes, subjectKeyId, usages } from './issued-extensions.js'
import {
  type CertifiedKey,
  forHours,
  forYears,
  keyIdOf,
  publicKeyOf,
  type Signer,
  selfSigner,
  signCertificate,
} from './signer.js'
import { ownName } from './subject.js'

interface InternalAuthorityRequest {
  /** PKCS#8, PEM. */
  readonly privateKey: string
  readonly commonName: string
  readonly now: Date
}

/** An authority of the certificates between processes. Valid for ten years. */
export async function issueInternalAuthority({
  privateKey,
  commonName,
  now,
}: InternalAuthorityRequest): Promise<CertifiedKey> {
  const subject = ownName(commonName)
  const publicKey = publicKeyOf(privateKey)
  const pem = await signCertificate(selfSigner(subject, privateKey), {
    subject,
    publicKey,
    validity: forYears(10, now),
    extensions: [
      authority(0),
      usages('digitalSignature', 'keyCertSign', 'crlSign'),
      subjectKeyId(keyIdOf(publicKey)),
    ],
  })
  return { pem, privateKey }
}

interface ProcessRequest {
  /** PKCS#8, PEM. */
  readonly privateKey: string
  /** DNS names and IP addresses. */
  readonly hosts: readonly string[]
  readonly commonName: string
  readonly hours: number
  readonly now: Date
}

/** The certificate of a process, for both sides of its connections. */
export async function issueProcess(
  signer: Signer,
  { privateKey, hosts, commonName, hours, now }: ProcessRequest,
): Promise<CertifiedKey> {
  const publicKey = publicKeyOf(privateKey)
  const validity = forHours(hours, now)
  const pem = await signCertificate(signer, {
    subject: ownName(commonName),
    publicKey,
    validity: { ...validity, notBefore: new Date(now.getTime() - 60_000) }, // as its authority, which may be as new
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

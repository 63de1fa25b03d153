import { createPrivateKey, X509Certificate } from 'node:crypto'
import { hostName, uriName } from './alt-names.js'
import { partsOfCertificate } from './certificate.js'
import { derOf, type Element, sequence } from './der.js'
import { extensionIds } from './extension.js'
import {
  altNames,
  authority,
  copied,
  noAuthority,
  purposes,
  subjectKeyId,
  usages,
} from './issued-extensions.js'
import {
  beginOf,
  type CertifiedKey,
  forHours,
  forYears,
  keyIdOf,
  publicKeyOf,
  type Signer,
  signCertificate,
  type Validity,
} from './signer.js'
import { ownName } from './subject.js'

interface AuthorityRequest {
  /** PKCS#8, PEM. */
  readonly privateKey: string
  readonly commonName: string
  /** One of its names, where SPIFFE expects it. Absent: the authority is that of processes. */
  readonly trustDomain?: string
  readonly now: Date
  readonly signer?: Signer // absent: it signs itself
}

/** An authority, valid for ten years: a root, or one below the signer. Only a root of the network signs authorities. */
export async function issueCa(request: AuthorityRequest): Promise<CertifiedKey> {
  const { privateKey, commonName, trustDomain, now, signer } = request
  const subject = ownName(commonName)
  const publicKey = publicKeyOf(privateKey)
  const keyId = keyIdOf(publicKey)
  const pem = await signCertificate(signer ?? { subject, keyId, key: createPrivateKey(privateKey) }, {
    subject,
    publicKey,
    validity: forYears(10, now),
    extensions: [
      authority(signer || trustDomain === undefined ? 0 : undefined),
      usages('digitalSignature', 'keyCertSign', 'crlSign'),
      ...(trustDomain === undefined ? [] : [altNames([uriName(`spiffe://${trustDomain}`)])]),
      subjectKeyId(keyId),
    ],
  })
  return { pem, privateKey }
}

/**
 * Certifies the key of another root under its name, with the same extensions: clients that trust only the signer's
 * root verify everything below the other one.
 */
export function crossSign(signer: Signer, rootPem: string, now: Date): Promise<string> {
  const root = new X509Certificate(rootPem)
  const { subject, publicKey, extensions } = partsOfCertificate(root)
  return signCertificate(signer, {
    subject,
    publicKey,
    validity: { notBefore: beginOf(now), notAfter: new Date(root.validTo) },
    extensions: extensions.filter(({ id }) => id !== extensionIds.authorityKeyId).map(copied),
  })
}

interface ServerRequest {
  /** PKCS#8, PEM. */
  readonly privateKey: string
  /** DNS names and IP addresses. */
  readonly hosts: readonly string[]
  readonly now: Date
  readonly commonName?: string
  /** Absent: a year. */
  readonly hours?: number
}

/** The TLS certificate of gateways, or of a process. It has both purposes because TLS stacks differ in which one they require. */
export async function issueServer(
  signer: Signer,
  { privateKey, hosts, now, commonName = 'overlay server', hours }: ServerRequest,
): Promise<CertifiedKey> {
  const publicKey = publicKeyOf(privateKey)
  const pem = await signCertificate(signer, {
    subject: ownName(commonName),
    publicKey,
    validity: hours === undefined ? forYears(1, now) : { ...forHours(hours, now), notBefore: beginOf(now) },
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

export interface LeafRequest {
  /** DER of the Name. */
  readonly subject: Buffer
  /** DER of the SubjectPublicKeyInfo. */
  readonly publicKey: Buffer
  readonly role: 'client' | 'server'
  readonly altNames: readonly Element[]
  readonly validity: Validity
}

/** The profile of certificates for identities and routers. */
export function issueLeaf(
  signer: Signer,
  { subject, publicKey, role, altNames: names, validity }: LeafRequest,
): Promise<string> {
  const isNameless = subject.equals(emptyName)
  return signCertificate(signer, {
    subject, // differs: the request's own order and string types
    publicKey,
    validity,
    extensions: [leafUsages, leafPurposes[role], ...(names.length > 0 ? [altNames(names, isNameless)] : [])],
  })
}

const emptyName = derOf(sequence())
const leafUsages = usages('digitalSignature', 'keyEncipherment', 'dataEncipherment')
const leafPurposes = { client: purposes('clientAuth'), server: purposes('serverAuth') }

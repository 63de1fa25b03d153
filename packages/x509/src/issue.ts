import { X509Certificate } from 'node:crypto'
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

interface CaRequest {
  readonly privateKey: string
  readonly commonName: string
  /** One of its names, where SPIFFE expects it. */
  readonly trustDomain: string
  readonly now: Date
  readonly signer?: Signer // absent: it signs itself
}

export async function issueCa(request: CaRequest): Promise<CertifiedKey> {
  const { privateKey, commonName, trustDomain, now, signer } = request
  const subject = ownName(commonName)
  const publicKey = publicKeyOf(privateKey)
  const pem = await signCertificate(signer ?? selfSigner(subject, privateKey), {
    subject,
    publicKey,
    validity: forYears(10, now),
    extensions: [
      authority(signer && 0), // an authority below the root signs no further authorities
      usages('digitalSignature', 'keyCertSign', 'crlSign'),
      altNames([uriName(`spiffe://${trustDomain}`)]),
      subjectKeyId(keyIdOf(publicKey)),
    ],
  })
  return { pem, privateKey }
}

/**
 * Certifies the key of another root under its name, with the same extensions: who trusts only the signer's root verifies
 * everything below the other one.
 */
export function crossSign(signer: Signer, rootPem: string, now: Date): Promise<string> {
  const root = new X509Certificate(rootPem)
  const { subject, publicKey, extensions } = partsOfCertificate(root)
  const notBefore = new Date(now.getTime() - 60_000)
  return signCertificate(signer, {
    subject,
    publicKey,
    validity: { notBefore, notAfter: new Date(root.validTo) },
    extensions: extensions.filter(({ id }) => id !== extensionIds.authorityKeyId).map(copied),
  })
}

interface ServerRequest {
  readonly privateKey: string
  readonly hosts: readonly string[]
  readonly now: Date
}

/** The TLS certificate of gateways. It has both purposes because TLS stacks differ in which one they require. */
export async function issueServer(
  signer: Signer,
  { privateKey, hosts, now }: ServerRequest,
): Promise<CertifiedKey> {
  const publicKey = publicKeyOf(privateKey)
  const pem = await signCertificate(signer, {
    subject: ownName('overlay server'),
    publicKey,
    validity: forYears(1, now),
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

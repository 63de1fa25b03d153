import { X509Certificate } from 'node:crypto'
import { uriName } from './alt-names.js'
import { partsOfCertificate } from './certificate.js'
import { derOf, type Element, sequence } from './der.js'
import { extensionIds } from './extension.js'
import { altNames, copied, purposes, usages } from './issued-extensions.js'
import { certifyAuthority, certifyEndpoint } from './profiles.js'
import {
  beginOf,
  type CertifiedKey,
  forYears,
  type Signer,
  signCertificate,
  type Validity,
} from './signer.js'

interface CaRequest {
  readonly privateKey: string
  readonly commonName: string
  /** One of its names, where SPIFFE expects it. */
  readonly trustDomain: string
  readonly now: Date
  readonly signer?: Signer // absent: it signs itself
}

/** An authority of the network, valid for ten years: a root, or one below the signer. */
export const issueCa = ({ trustDomain, ...request }: CaRequest): Promise<CertifiedKey> =>
  certifyAuthority({
    ...request,
    pathLength: request.signer && 0, // an authority below the root signs no further authorities
    extensions: [altNames([uriName(`spiffe://${trustDomain}`)])],
  })

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
  readonly privateKey: string
  readonly hosts: readonly string[]
  readonly now: Date
}

/** The TLS certificate of gateways. It has both purposes because TLS stacks differ in which one they require. */
export const issueServer = (signer: Signer, { now, ...request }: ServerRequest): Promise<CertifiedKey> =>
  certifyEndpoint(signer, { ...request, commonName: 'overlay server', validity: forYears(1, now) })

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

import type { X509Certificate } from 'node:crypto'
import {
  type Algorithm,
  type CertificateParts,
  contentOf,
  type Extension,
  elementsIn,
  objectIdIn,
  onlyElement,
  partsOf,
  partsOfCertificate,
  soundKey,
  tag,
} from '@overlay/x509'

export const extensionIds = {
  keyUsage: '2.5.29.15',
  altNames: '2.5.29.17',
  basicConstraints: '2.5.29.19',
  nameConstraints: '2.5.29.30',
  extendedKeyUsage: '2.5.29.37',
}

/** Those of which nothing follows for a login may be critical as well: key ids, policies, where revocations are. */
const understood = new Set([
  ...Object.values(extensionIds),
  '2.5.29.14',
  '2.5.29.18',
  '2.5.29.31',
  '2.5.29.32',
  '2.5.29.35',
  '1.3.6.1.5.5.7.1.1',
])

/** RSA and ECDSA with SHA-2, and Ed25519. */
const signatures = new Set([
  '1.2.840.113549.1.1.11',
  '1.2.840.113549.1.1.12',
  '1.2.840.113549.1.1.13',
  '1.2.840.10045.4.3.2',
  '1.2.840.10045.4.3.3',
  '1.2.840.10045.4.3.4',
  '1.3.101.112',
])
const RSA_PSS = '1.2.840.113549.1.1.10'
const sha2 = new Set(['2.16.840.1.101.3.4.2.1', '2.16.840.1.101.3.4.2.2', '2.16.840.1.101.3.4.2.3'])

const usageBits = { digitalSignature: 0x80, certificateSign: 0x04 }
const clientAuth = new Set(['1.3.6.1.5.5.7.3.2', '2.5.29.37.0']) // or anything

/** One certificate of a chain, read. */
export interface Link extends CertificateParts {
  readonly certificate: X509Certificate
  readonly isLeaf: boolean
}

/** Reads what the rules need; a DerError or KeyError where there is nothing sound to read. */
export function linkOf(certificate: X509Certificate, isLeaf: boolean): Link {
  const parts = partsOfCertificate(certificate)
  soundKey(parts.publicKey)
  return { ...parts, certificate, isLeaf }
}

/** Each link must be for what it is used for here. What a certificate does not restrict is allowed. */
export function isUsable(link: Link): boolean {
  const { extensions } = link
  const ids = extensions.map(({ id }) => id)
  return (
    new Set(ids).size === ids.length &&
    extensions.every(({ id, isCritical }) => !isCritical || understood.has(id)) &&
    hasUsage(link) &&
    isForClients(extensionOf(extensions, extensionIds.extendedKeyUsage))
  )
}

export const extensionOf = (extensions: readonly Extension[], wanted: string): Buffer | undefined =>
  extensions.find(({ id }) => id === wanted)?.value

/** A leaf signs the handshake, all others sign certificates. */
function hasUsage({ extensions, isLeaf }: Link): boolean {
  const value = extensionOf(extensions, extensionIds.keyUsage)
  if (!value) return true
  const [, bits = 0] = contentOf(onlyElement(value), tag.bitString)
  return (bits & (isLeaf ? usageBits.digitalSignature : usageBits.certificateSign)) !== 0
}

const isForClients = (value: Buffer | undefined): boolean =>
  value === undefined || partsOf(onlyElement(value)).some((purpose) => clientAuth.has(objectIdIn(purpose)))

/** MD5 and SHA-1 make signatures that others can make, too. */
export function isSoundlySigned({ signature }: Link): boolean {
  return signature.id === RSA_PSS ? hasSha2(signature) : signatures.has(signature.id)
}

/** Without a hash it is SHA-1. */
function hasSha2({ parameters }: Algorithm): boolean {
  const hash = parameters && partsOf(parameters).find((part) => part.tag === 0xa0)
  const [algorithm] = hash ? elementsIn(hash.content) : []
  return algorithm !== undefined && sha2.has(objectIdIn(partsOf(algorithm)[0]))
}

/** How many authorities may stand between this one and the leaf; undefined: any number. */
export function pathLengthOf({ extensions }: Pick<CertificateParts, 'extensions'>): number | undefined {
  const value = extensionOf(extensions, extensionIds.basicConstraints)
  const limit = value && partsOf(onlyElement(value)).find((part) => part.tag === tag.integer)
  if (!limit) return undefined
  return limit.content.length <= 4 ? limit.content.readUIntBE(0, limit.content.length) : undefined
}

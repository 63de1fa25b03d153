import type { X509Certificate } from 'node:crypto'
import {
  type CertificateParts,
  contentOf,
  extensionIds,
  extensionOf,
  objectIdIn,
  onlyElement,
  partsOf,
  partsOfCertificate,
  signatureSchemeOf,
  soundKey,
  tag,
} from '@overlay/x509'

/** Extensions that may be critical: those that the rules check, and those that have no effect on a login. */
const understood: ReadonlySet<string> = new Set([
  extensionIds.keyUsage,
  extensionIds.altNames,
  extensionIds.basicConstraints,
  extensionIds.nameConstraints,
  extensionIds.extendedKeyUsage,
  extensionIds.subjectKeyId,
  extensionIds.authorityKeyId,
  '2.5.29.18', // names of the issuer
  '2.5.29.31', // where revocations are
  '2.5.29.32', // policies
  '1.3.6.1.5.5.7.1.1', // where the issuer is
])

const usageBits = { digitalSignature: 0x80, certificateSign: 0x04 }
const clientAuth = new Set(['1.3.6.1.5.5.7.3.2', '2.5.29.37.0']) // or anything

/** One certificate of a chain, decoded. */
export interface Link extends CertificateParts {
  readonly certificate: X509Certificate
  readonly isLeaf: boolean
}

/** Decodes what the rules need. Throws a DerError or KeyError where the certificate is not sound. */
export function linkOf(certificate: X509Certificate, isLeaf: boolean): Link {
  const parts = partsOfCertificate(certificate)
  soundKey(parts.publicKey)
  return { ...parts, certificate, isLeaf }
}

/** Whether the certificate allows the use of this link. What it does not restrict is allowed. */
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

/** A leaf signs the handshake, an authority signs certificates. */
function hasUsage({ extensions, isLeaf }: Link): boolean {
  const value = extensionOf(extensions, extensionIds.keyUsage)
  if (!value) return true
  const [, bits = 0] = contentOf(onlyElement(value), tag.bitString)
  return (bits & (isLeaf ? usageBits.digitalSignature : usageBits.certificateSign)) !== 0
}

const isForClients = (value: Buffer | undefined): boolean =>
  value === undefined || partsOf(onlyElement(value)).some((purpose) => clientAuth.has(objectIdIn(purpose)))

/** Signatures with MD5 and SHA-1 can be forged. */
export const isSoundlySigned = ({ signature }: Link): boolean => signatureSchemeOf(signature) !== undefined

/** How many authorities may stand between this one and the leaf; undefined: any number. */
export function pathLengthOf({ extensions }: Pick<CertificateParts, 'extensions'>): number | undefined {
  const value = extensionOf(extensions, extensionIds.basicConstraints)
  const limit = value && partsOf(onlyElement(value)).find((part) => part.tag === tag.integer)
  if (!limit) return undefined
  return limit.content.length <= 4 ? limit.content.readUIntBE(0, limit.content.length) : undefined
}

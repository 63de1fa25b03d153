import type { CertificateParts } from './certificate.js'
import { contentOf, DerError, objectIdIn, onlyElement, partsOf, tag } from './der.js'
import { extensionIds, extensionOf, purposeIds, usageBits } from './extension.js'

type Extended = Pick<CertificateParts, 'extensions'>

/** How many authorities may stand between this one and the leaf; undefined: any number. */
export function pathLengthOf({ extensions }: Extended): number | undefined {
  const value = extensionOf(extensions, extensionIds.basicConstraints)
  const limit = value && partsOf(onlyElement(value)).find((part) => part.tag === tag.integer)
  if (!limit) return undefined
  const content = contentOf(limit, tag.integer)
  if (content.length === 0) throw new DerError('an integer has no content')
  return content.length <= 4 ? content.readUIntBE(0, content.length) : undefined
}

/** Whether the key may be used so. A certificate that restricts no usage allows all. */
export function allowsUsage({ extensions }: Extended, usage: keyof typeof usageBits): boolean {
  const value = extensionOf(extensions, extensionIds.keyUsage)
  if (!value) return true
  const [, bits = 0] = contentOf(onlyElement(value), tag.bitString)
  return (bits & usageBits[usage]) !== 0
}

const anyPurpose = '2.5.29.37.0'

/** Whether the certificate is for this purpose. One that restricts no purpose is for all. */
export function allowsPurpose({ extensions }: Extended, purpose: keyof typeof purposeIds): boolean {
  const value = extensionOf(extensions, extensionIds.extendedKeyUsage)
  if (!value) return true
  const allowed = partsOf(onlyElement(value)).map((part) => objectIdIn(part))
  return allowed.includes(purposeIds[purpose]) || allowed.includes(anyPurpose)
}

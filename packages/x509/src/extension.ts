import { contentOf, DerError, type Element, objectIdIn, partsOf, tag } from './der.js'

export interface Extension {
  readonly id: string
  readonly isCritical: boolean
  /** DER of the value. */
  readonly value: Buffer
}

export const extensionIds = {
  subjectKeyId: '2.5.29.14',
  keyUsage: '2.5.29.15',
  altNames: '2.5.29.17',
  basicConstraints: '2.5.29.19',
  nameConstraints: '2.5.29.30',
  authorityKeyId: '2.5.29.35',
  extendedKeyUsage: '2.5.29.37',
}

export const purposeIds = { serverAuth: '1.3.6.1.5.5.7.3.1', clientAuth: '1.3.6.1.5.5.7.3.2' }

export const usageBits = {
  digitalSignature: 0x80,
  keyEncipherment: 0x20,
  dataEncipherment: 0x10,
  keyCertSign: 0x04,
  crlSign: 0x02,
}

/** Tags of the kinds of alternative names. */
export const nameTags = { email: 0x81, dns: 0x82, directory: 0xa4, uri: 0x86, ip: 0x87 } as const

/** Reads a list of extensions, as certificates and requests have them. Each occurs once at most. */
export function extensionsIn(list: Element): readonly Extension[] {
  const extensions = partsOf(list).map(extensionIn)
  if (new Set(extensions.map(({ id }) => id)).size < extensions.length)
    throw new DerError('an extension occurs twice')
  return extensions
}

function extensionIn(extension: Element): Extension {
  const [id, ...rest] = partsOf(extension)
  const [critical] = rest.length > 1 ? rest : []
  return {
    id: objectIdIn(id),
    isCritical: critical !== undefined && contentOf(critical, tag.boolean)[0] !== 0,
    value: contentOf(rest.at(-1), tag.octetString),
  }
}

export const extensionOf = (extensions: readonly Extension[], id: string): Buffer | undefined =>
  extensions.find((extension) => extension.id === id)?.value

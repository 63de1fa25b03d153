import forge from 'node-forge'

const { Class, Type } = forge.asn1
const SEQUENCE_BYTE = 0x30
/** Structures in octets in structures: PKCS#12 has two. */
const MAX_DEPTH = 8

/**
 * The highest number of iterations that decrypting a structure takes, as far as it is visible without a passphrase: a
 * number that follows a salt. Descends into octets that contain a structure.
 */
export function iterationsIn({ type, tagClass, value }: forge.asn1.Asn1, depth = MAX_DEPTH): number {
  if (typeof value === 'string')
    return tagClass === Class.UNIVERSAL && type === Type.OCTETSTRING && depth > 0
      ? iterationsIn(structureIn(value), depth - 1)
      : 0
  const counts = value.map((part, at) => Math.max(iterationsIn(part, depth), countAfter(value[at - 1], part)))
  return Math.max(0, ...counts)
}

const isPlain = (part: forge.asn1.Asn1 | undefined, type: forge.asn1.Type): boolean =>
  part?.tagClass === Class.UNIVERSAL && part.type === type

const countAfter = (salt: forge.asn1.Asn1 | undefined, count: forge.asn1.Asn1): number =>
  isPlain(salt, Type.OCTETSTRING) && isPlain(count, Type.INTEGER) && typeof count.value === 'string'
    ? Number.parseInt(Buffer.from(count.value, 'latin1').toString('hex') || '0', 16)
    : 0

const nothing: forge.asn1.Asn1 = forge.asn1.create(Class.UNIVERSAL, Type.NULL, false, '')

function structureIn(octets: string): forge.asn1.Asn1 {
  if (octets.charCodeAt(0) !== SEQUENCE_BYTE) return nothing
  try {
    return forge.asn1.fromDer(octets, false)
  } catch {
    return nothing // encrypted, or a salt
  }
}

import { bits, type Element, encode, objectId, onlyElement, sequence, tag } from './der.js'
import { type Extension, extensionIds, purposeIds, usageBits } from './extension.js'

function extension(type: string, value: Element, critical = false): Element {
  return sequence(objectId(type), ...(critical ? [derTrue] : []), encode(tag.octetString, value))
}
const derTrue = encode(tag.boolean, Buffer.from([0xff]))

export const copied = ({ id, value, isCritical }: Extension): Element =>
  extension(id, onlyElement(value), isCritical)

/** @param pathLength the number of authorities that may follow below; absent: any number */
export const authority = (pathLength?: number): Element =>
  extension(
    extensionIds.basicConstraints,
    sequence(derTrue, ...(pathLength === undefined ? [] : [encode(tag.integer, Buffer.from([pathLength]))])),
    true,
  )

export const noAuthority = extension(extensionIds.basicConstraints, sequence(), true)

export function usages(...names: readonly (keyof typeof usageBits)[]): Element {
  const byte = names.reduce((sum, name) => sum | usageBits[name], 0)
  const unused = 31 - Math.clz32(byte & -byte) // zeros at the end
  return extension(extensionIds.keyUsage, bits(Buffer.from([byte]), unused), true)
}

export type Purpose = keyof typeof purposeIds

export const purposes = (...names: readonly Purpose[]): Element =>
  extension(extensionIds.extendedKeyUsage, sequence(...names.map((name) => objectId(purposeIds[name]))))

/** @param critical required where the subject is empty */
export const altNames = (names: readonly Element[], critical = false): Element =>
  extension(extensionIds.altNames, sequence(...names), critical)

export const subjectKeyId = (keyId: Buffer): Element =>
  extension(extensionIds.subjectKeyId, encode(tag.octetString, keyId))

export const authorityKeyId = (keyId: Buffer): Element =>
  extension(extensionIds.authorityKeyId, sequence(encode(0x80, keyId)))

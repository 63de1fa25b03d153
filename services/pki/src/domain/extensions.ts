import { bits, type Element, encode, objectId, sequence, tag } from '@overlay/x509'

export const subjectKeyIdType = '2.5.29.14'
export const altNamesType = '2.5.29.17'

function extension(type: string, value: Buffer, critical = false): Buffer {
  return sequence(objectId(type), ...(critical ? [yes] : []), encode(tag.octetString, value))
}
const yes = encode(tag.boolean, Buffer.from([0xff]))

/** @param pathLength how many authorities may stand below; absent: any number */
export const authority = (pathLength?: number): Buffer =>
  extension(
    '2.5.29.19',
    sequence(yes, ...(pathLength === undefined ? [] : [encode(tag.integer, Buffer.from([pathLength]))])),
    true,
  )

export const noAuthority = extension('2.5.29.19', sequence(), true)

const usageBits = {
  digitalSignature: 0x80,
  keyEncipherment: 0x20,
  dataEncipherment: 0x10,
  keyCertSign: 0x04,
  crlSign: 0x02,
}

export function usages(...named: readonly (keyof typeof usageBits)[]): Buffer {
  const byte = named.reduce((sum, name) => sum | usageBits[name], 0)
  const unused = 31 - Math.clz32(byte & -byte) // zeros at the end
  return extension('2.5.29.15', bits(Buffer.from([byte]), unused), true)
}

const purposeIds = { serverAuth: '1.3.6.1.5.5.7.3.1', clientAuth: '1.3.6.1.5.5.7.3.2' }
export type Purpose = keyof typeof purposeIds

export const purposes = (...named: readonly Purpose[]): Buffer =>
  extension('2.5.29.37', sequence(...named.map((name) => objectId(purposeIds[name]))))

/** @param critical where they stand for the subject, which is empty */
export const altNames = (names: readonly Element[], critical = false): Buffer =>
  extension(altNamesType, sequence(...names.map(({ whole }) => whole)), critical)

export const subjectKeyId = (keyId: Buffer): Buffer =>
  extension(subjectKeyIdType, encode(tag.octetString, keyId))

export const authorityKeyId = (keyId: Buffer): Buffer => extension('2.5.29.35', sequence(encode(0x80, keyId)))

/** One element of DER. */
interface Element {
  readonly tag: number
  readonly content: Buffer
  readonly next: number
}

function read(der: Buffer, at: number): Element {
  const tag = der.readUInt8(at)
  const first = der.readUInt8(at + 1)
  const bytes = first > 0x80 ? first & 0x7f : 0
  const length = bytes > 0 ? der.readUIntBE(at + 2, bytes) : first
  const start = at + 2 + bytes
  return { tag, content: der.subarray(start, start + length), next: start + length }
}

function children({ content }: Element): Element[] {
  const found: Element[] = []
  for (let at = 0; at < content.length; at = found.at(-1)?.next ?? content.length)
    found.push(read(content, at))
  return found
}

const basicConstraints = Buffer.from('551d13', 'hex')

/**
 * How many certificates may stand between this authority and the leaf; undefined: any number.
 * node:crypto tells whether a certificate is an authority, but not this.
 */
export function pathLengthOf(certificate: Buffer): number | undefined {
  const [toBeSigned] = children(read(certificate, 0))
  const wrapper = toBeSigned && children(toBeSigned).find(({ tag }) => tag === 0xa3)
  const [list] = wrapper ? children(wrapper) : []
  for (const extension of list ? children(list) : []) {
    const [id, ...rest] = children(extension)
    const value = rest.at(-1)
    if (!id?.content.equals(basicConstraints) || !value) continue
    const limit = children(read(value.content, 0)).find(({ tag }) => tag === 0x02)
    return limit && limit.content.length <= 4 ? limit.content.readUIntBE(0, limit.content.length) : undefined
  }
  return undefined
}

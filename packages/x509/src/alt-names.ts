import { isIP } from 'node:net'
import forge from 'node-forge/lib/util.js'
import { contentOf, DerError, type Element, encode, onlyElement, partsOf } from './der.js'
import { type Extension, extensionIds, nameTags } from './extension.js'

/** The tags of the kinds of names that certificates of the network have. */
const supportedTags: readonly number[] = [nameTags.email, nameTags.dns, nameTags.uri, nameTags.ip]

/** The names in a list of extensions. Leaves out other kinds. */
export const altNamesIn = (extensions: readonly Extension[]): readonly Element[] =>
  extensions
    .filter(({ id }) => id === extensionIds.altNames)
    .flatMap(({ value }) => partsOf(onlyElement(value)))
    .filter(({ tag }) => supportedTags.includes(tag))

/** Refuses a name whose content does not fit its kind. */
export function checkName(name: Element): void {
  const { tag } = name
  const content = contentOf(name, tag)
  const isSound =
    tag === nameTags.ip ? [4, 16].includes(content.length) : content.every((byte) => byte < 0x80)
  if (!isSound) throw new DerError('content of a name does not fit its kind')
}

export const uriName = (uri: string): Element => encode(nameTags.uri, Buffer.from(uri))

export const hostName = (host: string): Element =>
  isIP(host)
    ? encode(nameTags.ip, Buffer.from(forge.bytesFromIP(plain(host)) ?? '', 'latin1'))
    : encode(nameTags.dns, Buffer.from(host))

export const isHost = ({ tag }: Element): boolean => tag === nameTags.dns || tag === nameTags.ip

/** The text of a name. Addresses are in their shortest form. */
export const textOf = (name: Element): string => {
  const content = contentOf(name, name.tag).toString('latin1')
  return name.tag === nameTags.ip ? (forge.bytesToIP(content) ?? '') : content
}

/** Without dots, as the library reads it. */
const plain = (ip: string): string => (isIP(ip) === 6 ? new URL(`http://[${ip}]`).hostname.slice(1, -1) : ip)

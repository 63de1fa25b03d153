import { isIP } from 'node:net'
import {
  DerError,
  type Element,
  type Extension,
  elementsIn,
  encode,
  onlyElement,
  partsOf,
} from '@overlay/x509'
import { altNamesType } from './extensions.js'

/** Kinds of names that certificates of the network carry, by their tags. */
export const nameKind = { email: 0x81, dns: 0x82, uri: 0x86, ip: 0x87 } as const

const kinds: readonly number[] = Object.values(nameKind)

/** The names in a list of extensions, of the kinds that are carried. */
export const altNamesIn = (extensions: readonly Extension[]): readonly Element[] =>
  extensions
    .filter(({ id }) => id === altNamesType)
    .flatMap(({ value }) => elementsIn(value))
    .flatMap((names) => partsOf(names))
    .filter(({ tag }) => kinds.includes(tag))

/** Names as strangers give them. */
export function checkName({ tag, content }: Element): void {
  const isSound =
    tag === nameKind.ip ? [4, 16].includes(content.length) : content.every((byte) => byte < 0x80)
  if (!isSound) throw new DerError('name of a form that its kind has not')
}

export const uriName = (uri: string): Element => name(nameKind.uri, Buffer.from(uri))

export const hostName = (host: string): Element =>
  isIP(host) ? name(nameKind.ip, ipBytes(host)) : name(nameKind.dns, Buffer.from(host))

const name = (kind: number, content: Buffer): Element => onlyElement(encode(kind, content))

export const isHost = ({ tag }: Element): boolean => tag === nameKind.dns || tag === nameKind.ip

/** Of a name; addresses in their shortest form. */
export const textOf = ({ tag, content }: Element): string =>
  tag === nameKind.ip ? ipText(content) : content.toString('latin1')

function ipBytes(ip: string): Buffer {
  if (isIP(ip) === 4) return Buffer.from(ip.split('.').map(Number))
  const [head = [], tail = []] = shortest(ip)
    .split('::')
    .map((part) => part.split(':').filter(Boolean))
  const zeros = Array<string>(8 - head.length - tail.length).fill('0')
  return Buffer.from([...head, ...zeros, ...tail].map((group) => group.padStart(4, '0')).join(''), 'hex')
}

function ipText(bytes: Buffer): string {
  if (bytes.length === 4) return bytes.join('.')
  return shortest(bytes.toString('hex').match(/.{4}/g)?.join(':') ?? '')
}

/** Of an IPv6 address, without dots. */
const shortest = (ip: string): string => new URL(`http://[${ip}]`).hostname.slice(1, -1)

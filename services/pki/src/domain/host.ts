import { isIP } from 'node:net'
import { domainToASCII, domainToUnicode } from 'node:url'
import type { Element } from '@overlay/x509'
import { nameKind, textOf } from './alt-names.js'

/** A host name or address, in the one form in which equal ones are equal. */
export interface Host {
  /** In lower case without a dot at the end, IDNs as ASCII, mapped IPv4 addresses as IPv4. */
  readonly text: string
  /** Stands for every host below `text`. */
  readonly isWildcard: boolean
}

const character = 'a-z0-9_\\u0080-\\uffff'
const label = `[${character}](?:[${character}-]{0,61}[${character}])?`
const dnsName = new RegExp(`^(\\*\\.)?(${label}(?:\\.${label})*)\\.?$`, 'i')
const longest = 254 // with the dot at the end

/** Undefined: it is no name of a host, whatever some TLS library may make of it. */
export function hostIn(written: string): Host | undefined {
  if (isIP(written) === 6) return { text: plainIpv6(written), isWildcard: false }
  if (written.length > longest) return undefined
  const [, wildcard, name] = dnsName.exec(written) ?? []
  // a URL's host: addresses in odd forms (0x7f.1) become usual ones
  const url = `http://${name}`
  if (name === undefined || !URL.canParse(url)) return undefined
  const { hostname: text } = new URL(url)
  if (!text.split('.').every(isLabel)) return undefined
  return { text, isWildcard: wildcard !== undefined }
}

/** An IDN must be the ASCII form of other text. Some releases of Node accept any text after the prefix in a URL. */
function isLabel(label: string): boolean {
  if (!label.startsWith('xn--')) return true
  const decoded = domainToUnicode(label)
  return decoded !== label && domainToASCII(decoded) === label
}

/** The host that a subject alternative name of a kind with hosts stands for. */
export const hostOf = (name: Element): Host | undefined =>
  name.tag === nameKind.ip || name.tag === nameKind.dns ? hostIn(textOf(name)) : undefined

function plainIpv6(address: string): string {
  const text = new URL(`http://[${address}]`).hostname.slice(1, -1)
  const [, high, low] = /^::ffff:([0-9a-f]{1,4}):([0-9a-f]{1,4})$/.exec(text) ?? []
  if (high === undefined || low === undefined) return text
  return [high, low]
    .map((group) => Number.parseInt(group, 16))
    .flatMap((group) => [group >> 8, group & 0xff])
    .join('.')
}

export const isLoopback = ({ text, isWildcard }: Host): boolean =>
  !isWildcard && (text === 'localhost' || text === '::1' || (isIP(text) === 4 && text.startsWith('127.')))

/** Whether some TLS library could take a certificate for the one as one for the other. */
export function overlap(a: Host, b: Host): boolean {
  if (a.text === b.text) return a.isWildcard === b.isWildcard
  return (a.isWildcard && isBelow(b, a)) || (b.isWildcard && isBelow(a, b))
}

const isBelow = ({ text }: Host, above: Host): boolean => text.endsWith(`.${above.text}`)

/** Names that the certificate of a gateway must have. `advertised`: the host that clients are given. */
export const gatewayHosts = (advertised: string, more: readonly string[] = []): readonly string[] => [
  ...new Set(['localhost', '127.0.0.1', '::1', advertised, ...more].map((host) => host.toLowerCase())),
]

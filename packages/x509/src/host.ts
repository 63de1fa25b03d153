import { isIP } from 'node:net'
import { domainToASCII, domainToUnicode } from 'node:url'
import { textOf } from './alt-names.js'
import type { Element } from './der.js'
import { nameTags } from './extension.js'
import { HOST_CHARACTERS } from './limits.js'

/** A host name or address in canonical form. */
export interface Host {
  /** Lower case, without a dot at the end, IDNs as ASCII, mapped IPv4 addresses as IPv4. */
  readonly text: string
  /** Matches every host below `text`. */
  readonly isWildcard: boolean
}

const character = 'a-z0-9_\\u0080-\\uffff'
const label = `[${character}](?:[${character}-]{0,61}[${character}])?`
const dnsName = new RegExp(`^(\\*\\.)?(${label}(?:\\.${label})*)\\.?$`, 'i')
/** Part of a label in the latest IDNA tables, dropped by older ones: two hosts for one text. */
const DROPPED = '\u1806'

/** The host that a text names. Undefined where it is no host name, even if some TLS library accepts it. */
export function hostIn(input: string): Host | undefined {
  if (isIP(input) === 6) return { text: plainIpv6(input), isWildcard: false }
  if (input.length > HOST_CHARACTERS) return undefined
  const [, wildcard, name] = dnsName.exec(input) ?? []
  // parsing as a URL turns addresses in unusual forms (0x7f.1) into canonical ones
  const url = `http://${name}`
  if (name === undefined || name.includes(DROPPED) || !URL.canParse(url)) return undefined
  const { hostname: text } = new URL(url)
  if (!text.split('.').every(isLabel)) return undefined
  return { text, isWildcard: wildcard !== undefined }
}

/** An IDN label must be the ASCII form of another text. Some releases of Node accept any text after the prefix. */
function isLabel(label: string): boolean {
  if (!label.startsWith('xn--')) return true
  const decoded = domainToUnicode(label)
  return decoded !== label && domainToASCII(decoded) === label
}

/** The host that a subject alternative name names. */
export const hostOf = (name: Element): Host | undefined =>
  name.tag === nameTags.ip || name.tag === nameTags.dns ? hostIn(textOf(name)) : undefined

function plainIpv6(address: string): string {
  const text = new URL(`http://[${address}]`).hostname.slice(1, -1)
  const [, high, low] = /^::ffff:([0-9a-f]{1,4}):([0-9a-f]{1,4})$/.exec(text) ?? []
  if (high === undefined || low === undefined) return text
  return [high, low]
    .map((group) => Number.parseInt(group, 16))
    .flatMap((group) => [group >> 8, group & 0xff])
    .join('.')
}

/** The text of a host, with the asterisk of a wildcard. */
export const hostText = ({ text, isWildcard }: Host): string => (isWildcard ? `*.${text}` : text)

export const isLoopback = ({ text, isWildcard }: Host): boolean =>
  !isWildcard && (text === 'localhost' || text === '::1' || (isIP(text) === 4 && text.startsWith('127.')))

/** Whether some TLS library could accept a certificate for one host as one for the other. */
export function overlap(a: Host, b: Host): boolean {
  if (a.text === b.text) return a.isWildcard === b.isWildcard
  return (a.isWildcard && isBelow(b, a)) || (b.isWildcard && isBelow(a, b))
}

const isBelow = ({ text }: Host, above: Host): boolean => text.endsWith(`.${above.text}`)

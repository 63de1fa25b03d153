import { isIP } from 'node:net'
import {
  contentOf,
  type Element,
  type Extension,
  encode,
  extensionIds,
  extensionOf,
  nameTags,
  objectIdIn,
  onlyElement,
  partsOf,
  stringIn,
  tag,
} from '@overlay/x509'
import type { Link } from './link-rules.js'

/** Kinds of names that `matches` compares. */
const kinds: readonly number[] = [nameTags.email, nameTags.dns, nameTags.directory, nameTags.uri, nameTags.ip]

const EMAIL_ATTRIBUTE = '1.2.840.113549.1.9.1'
const COMMON_NAME = '2.5.4.3'

/**
 * The bytes that name comparisons for one chain may still read. Without it, a client could demand any number of them.
 */
export interface Budget {
  left: number
}

/** About 20 ms. A leaf with five names below an authority with a hundred constraints needs a tenth. */
export const comparisonBudget = (): Budget => ({ left: 256 * 1024 })

/** False: it is used up. */
function spend(budget: Budget, bytes: number): boolean {
  budget.left -= bytes
  return budget.left >= 0
}

/** For each name and each constraint, besides their bytes. */
const COMPARISON_BYTES = 16

/**
 * Whether the names of a certificate are within the constraints of an authority above it. A constraint on a kind of names
 * that is not supported here refuses every chain. So does a number of comparisons that exceeds the budget.
 */
export function isWithinConstraints(authority: Link, below: Link, budget: Budget): boolean {
  const value = extensionOf(authority.extensions, extensionIds.nameConstraints)
  if (!value) return true
  const altNames = extensionOf(below.extensions, extensionIds.altNames)
  const namesLength = below.subject.length + (altNames?.length ?? 0)
  if (!spend(budget, value.length + namesLength)) return false
  const { permitted, excluded } = constraintsIn(value)
  const bases = [...permitted, ...excluded]
  if (bases.some((base) => base === undefined || !kinds.includes(base.tag))) return false
  const names = namesOf(below)
  const bytes = names.length * value.length + bases.length * namesLength
  if (!spend(budget, bytes + names.length * bases.length * COMPARISON_BYTES)) return false
  return names.every((name) => {
    const alike = permitted.flatMap((base) => (base?.tag === name.tag ? base : []))
    return (
      (alike.length === 0 || alike.some((base) => matches(name, base))) &&
      !excluded.some((base) => base?.tag === name.tag && matches(name, base, true))
    )
  })
}

interface Constraints {
  readonly permitted: readonly (Element | undefined)[]
  readonly excluded: readonly (Element | undefined)[]
}

function constraintsIn(value: Buffer): Constraints {
  const lists = partsOf(onlyElement(value))
  const basesIn = (which: number) =>
    lists.filter((list) => list.tag === which).flatMap((list) => partsOf(list, which).map(baseOf))
  return { permitted: basesIn(0xa0), excluded: basesIn(0xa1) }
}

/** Undefined: the subtree has a minimum or maximum, which no profile allows. */
function baseOf(subtree: Element): Element | undefined {
  const [base, ...limits] = partsOf(subtree)
  return limits.length === 0 ? base : undefined
}

/**
 * The alternative names, and those in the subject: the whole subject, mail addresses, and a common name that is a host.
 */
function namesOf({ subject, extensions, isLeaf }: Link): readonly Element[] {
  const alternative = altNamesIn(extensions)
  const attributes = partsOf(onlyElement(subject)).flatMap(attributesOf)
  const mails = attributes.filter(({ type }) => type === EMAIL_ATTRIBUTE)
  const hasHosts = alternative.some((name) => name.tag === nameTags.dns)
  const hosts =
    isLeaf && !hasHosts ? attributes.filter(({ type, text }) => type === COMMON_NAME && isHost(text)) : []
  return [
    ...alternative,
    ...(attributes.length > 0 ? [encode(nameTags.directory, subject)] : []),
    ...mails.map(({ text }) => encode(nameTags.email, Buffer.from(text))),
    ...hosts.map(({ text }) => encode(nameTags.dns, Buffer.from(text))),
  ]
}

const altNamesIn = (extensions: readonly Extension[]): readonly Element[] => {
  const value = extensionOf(extensions, extensionIds.altNames)
  return value ? partsOf(onlyElement(value)) : []
}

const isHost = (text: string): boolean => /^[\w*-]+(\.[\w-]+)+\.?$/.test(text)

interface Attribute {
  readonly type: string
  readonly text: string
}

const attributesOf = (part: Element): readonly Attribute[] =>
  partsOf(part, tag.set).map((attribute) => {
    const [type, value] = partsOf(attribute)
    return { type: objectIdIn(type), text: value ? stringIn(value) : '' }
  })

/** `isExcluding`: in doubt a name matches, else it does not. */
function matches(name: Element, base: Element, isExcluding = false): boolean {
  if (name.tag === nameTags.directory) return isDirectoryWithin(name, base)
  const [content, limitContent] = [name, base].map((one) => contentOf(one, one.tag)) as [Buffer, Buffer]
  const [text, limit] = [content, limitContent].map((one) => one.toString('latin1')) as [string, string]
  switch (name.tag) {
    case nameTags.dns:
      return isHostWithin(text, limit, isExcluding)
    case nameTags.email:
      return isMailWithin(text, limit)
    case nameTags.uri:
      return isUriWithin(text, limit, isExcluding)
    case nameTags.ip:
      return isAddressWithin(content, limitContent)
    default:
      return isExcluding
  }
}

const plain = (host: string): string => host.toLowerCase().replace(/\.$/, '')

/** An empty limit includes every host, one with a leading dot every host below it. */
function isHostWithin(host: string, limit: string, isExcluding = false): boolean {
  const [name, within] = [plain(host), plain(limit)]
  if (within === '') return true
  const [bare, below] = within.startsWith('.') ? [within.slice(1), within] : [within, `.${within}`]
  if (name.endsWith(below) || (name === bare && !within.startsWith('.'))) return true
  return isExcluding && name.startsWith('*.') && `.${bare}`.endsWith(name.slice(1))
}

/** A limit is one mailbox, all of one host, or all of the hosts below one. */
function isMailWithin(mail: string, limit: string): boolean {
  const at = mail.lastIndexOf('@')
  const host = plain(mail.slice(at + 1))
  if (limit.includes('@')) {
    const limitAt = limit.lastIndexOf('@')
    return mail.slice(0, at) === limit.slice(0, limitAt) && host === plain(limit.slice(limitAt + 1))
  }
  return isOneHost(host, limit)
}

/** As in RFC 5280, a limit without a leading dot includes that host alone. */
const isOneHost = (host: string, limit: string): boolean =>
  limit === '' || (limit.startsWith('.') ? host.endsWith(plain(limit)) : host === plain(limit))

/** A URI without a host, or with an address, is within no limit. */
function isUriWithin(uri: string, limit: string, isExcluding: boolean): boolean {
  const [, host = ''] = /^[a-z][a-z0-9+.-]*:\/\/(?:[^/?#@]*@)?([^/?#:]*)/i.exec(uri) ?? []
  if (host === '' || host.startsWith('[') || isIP(host) !== 0) return isExcluding
  return isExcluding ? isHostWithin(host, limit, true) : isOneHost(plain(host), limit)
}

/** A limit is an address and a mask. IPv4-mapped addresses count as IPv4. */
function isAddressWithin(address: Buffer, limit: Buffer): boolean {
  const isMapped = address.length === 16 && address.subarray(0, 12).equals(mappedPrefix)
  const bytes = isMapped && limit.length === 8 ? address.subarray(12) : address
  if (limit.length !== 2 * bytes.length) return false
  const mask = limit.subarray(bytes.length)
  return bytes.every((byte, i) => ((byte ^ (limit[i] ?? 0)) & (mask[i] ?? 0)) === 0)
}
const mappedPrefix = Buffer.from('00000000000000000000ffff', 'hex')

/** The limit is the beginning of the name. Case and white space do not count. */
function isDirectoryWithin(name: Element, base: Element): boolean {
  const [parts, limit] = [name, base].map((one) =>
    partsOf(partsOf(one, nameTags.directory)[0]).map(comparable),
  ) as [string[], string[]]
  return limit.every((part, i) => part === parts[i])
}

const comparable = (part: Element): string =>
  partsOf(part, tag.set)
    .map((attribute) => {
      const [type, value] = partsOf(attribute)
      const text = value && stringIn(value).trim().replaceAll(/\s+/g, ' ').toLowerCase()
      return `${objectIdIn(type)}=${text}`
    })
    .sort()
    .join('+')

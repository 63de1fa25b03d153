import type { X509Certificate } from 'node:crypto'
import type { Claim } from '@overlay/model'
import { EXTERNAL_ID_CHARACTERS } from '../limits.js'

/** The external id in a certificate; undefined: it has none. */
export function claimIn(certificate: X509Certificate, claim: Claim): string | undefined {
  const { matcher, matcherCriteria, parser, parserCriteria, index } = claim
  const matched = valuesIn(certificate, claim.location).flatMap((value) =>
    match(value, matcher, matcherCriteria),
  )
  const parsed = parser === 'SPLIT' ? matched.flatMap((value) => value.split(parserCriteria)) : matched
  const value = parsed[index]
  return value !== undefined && value.length <= EXTERNAL_ID_CHARACTERS && !value.includes('\0')
    ? value
    : undefined
}

/** The value without the criteria, if it matches. */
function match(value: string, matcher: Claim['matcher'], criteria: string): string[] {
  switch (matcher) {
    case 'PREFIX':
      return value.startsWith(criteria) ? [value.slice(criteria.length)] : []
    case 'SUFFIX':
      return value.endsWith(criteria) ? [value.slice(0, value.length - criteria.length)] : []
    case 'SCHEME':
      return value.toLowerCase().startsWith(`${criteria.toLowerCase()}:`) ? [value] : []
    default:
      return [value]
  }
}

function valuesIn(certificate: X509Certificate, location: Claim['location']): readonly string[] {
  switch (location) {
    case 'SAN_URI':
      return altNames(certificate, 'URI')
    case 'SAN_EMAIL':
      return altNames(certificate, 'email')
    default:
      return [commonNameOf(certificate)]
  }
}

/** The last common name, as other implementations read it; empty: there is none. */
export function commonNameOf(certificate: X509Certificate): string {
  const { CN = '' } = certificate.toLegacyObject().subject as { readonly CN?: string | readonly string[] }
  return [CN].flat().at(-1) ?? ''
}

/** node:crypto lists them with commas; a value that contains one is a JSON string. */
function altNames({ subjectAltName = '' }: X509Certificate, type: string): readonly string[] {
  const names = subjectAltName.matchAll(/(?:^|, )([^:,]+):("(?:[^"\\]|\\.)*"|[^,]*)/g)
  return [...names].flatMap(([, kind, value = '']) =>
    kind !== type ? [] : [value.startsWith('"') ? (JSON.parse(value) as string) : value],
  )
}

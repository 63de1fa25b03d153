import type { X509Certificate } from 'node:crypto'
import type { Claim } from '@overlay/model'

/** Longer ones no index holds. */
const longest = 1000

/** What a certificate says of whose it is. Nothing: it does not say it. */
export function claimIn(certificate: X509Certificate, claim: Claim): string | undefined {
  const { matcher, matcherCriteria, parser, parserCriteria, index } = claim
  const matched = valuesIn(certificate, claim.location).flatMap((value) =>
    match(value, matcher, matcherCriteria),
  )
  const parsed = parser === 'SPLIT' ? matched.flatMap((value) => value.split(parserCriteria)) : matched
  const found = parsed[index]
  return found !== undefined && found.length <= longest && !found.includes('\0') ? found : undefined
}

/** What is left of the value, if it is one of those that count. */
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

/** The last one, as others read it; empty when there is none. */
export function commonNameOf(certificate: X509Certificate): string {
  const { CN = '' } = certificate.toLegacyObject().subject as { readonly CN?: string | readonly string[] }
  return [CN].flat().at(-1) ?? ''
}

/** node:crypto lists them with commas; a value that has one itself is a JSON string. */
function altNames({ subjectAltName = '' }: X509Certificate, type: string): readonly string[] {
  const names = subjectAltName.matchAll(/(?:^|, )([^:,]+):("(?:[^"\\]|\\.)*"|[^,]*)/g)
  return [...names].flatMap(([, kind, value = '']) =>
    kind !== type ? [] : [value.startsWith('"') ? (JSON.parse(value) as string) : value],
  )
}

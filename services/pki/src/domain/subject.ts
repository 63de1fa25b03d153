import { AttributeTypeAndValue, AttributeValue, Name, RelativeDistinguishedName } from '@peculiar/asn1-x509'

const COMMON_NAME = '2.5.4.3'

/** The last common name, as others read it; empty when there is none. */
export function commonNameOf(subject: Name): string {
  const names = subject.flatMap((part) => part.filter(({ type }) => type === COMMON_NAME))
  return names.at(-1)?.value.toString() ?? ''
}

/** The same subject with this common name as its only one. */
export function withCommonName(subject: Name, commonName: string): Name {
  const others = subject
    .map((part) => part.filter(({ type }) => type !== COMMON_NAME))
    .filter((part) => part.length > 0)
    .map((part) => new RelativeDistinguishedName(part))
  const value = new AttributeValue({ utf8String: commonName })
  return new Name([
    ...others,
    new RelativeDistinguishedName([new AttributeTypeAndValue({ type: COMMON_NAME, value })]),
  ])
}

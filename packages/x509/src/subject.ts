import {
  DerError,
  derOf,
  type Element,
  encode,
  objectId,
  objectIdIn,
  onlyElement,
  partsOf,
  sequence,
  stringIn,
  tag,
  text,
} from './der.js'

const COMMON_NAME = '2.5.4.3'
const ORGANIZATION = '2.5.4.10'

/** The last common name, as in other implementations. Empty where there is none. `subject`: DER of a Name. */
export const commonNameOf = (subject: Buffer): string => commonNamesOf(subject).at(-1) ?? ''

/** All common names. */
export const commonNamesOf = (subject: Buffer): readonly string[] =>
  partsOf(onlyElement(subject))
    .flatMap(attributesOf)
    .flatMap(({ type, value }) => (type === COMMON_NAME ? [value] : []))

/** The same subject with this common name as its only one. */
export function withCommonName(subject: Buffer, commonName: string): Buffer {
  const rest = partsOf(onlyElement(subject))
    .map((part) => attributesOf(part).filter(({ type }) => type !== COMMON_NAME))
    .filter((part) => part.length > 0)
    .map((part) => encode(tag.set, ...part.map(({ element }) => element)))
  return derOf(sequence(...rest, attribute(COMMON_NAME, text(commonName, tag.utf8String))))
}

/** The name of an authority or server of the network. */
export const ownName = (commonName: string): Buffer =>
  derOf(
    sequence(
      attribute(ORGANIZATION, text('overlay', tag.printableString)),
      attribute(COMMON_NAME, text(commonName, tag.printableString)),
    ),
  )

const attribute = (type: string, value: Element): Element => encode(tag.set, sequence(objectId(type), value))

interface Attribute {
  readonly type: string
  readonly value: string
  readonly element: Element
}

const attributesOf = (part: Element): readonly Attribute[] =>
  partsOf(part, tag.set).map((attribute) => {
    const [type, value, ...more] = partsOf(attribute)
    if (!value || more.length > 0) throw new DerError('an attribute is a type and a value')
    return { type: objectIdIn(type), value: stringIn(value), element: attribute }
  })

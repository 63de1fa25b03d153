import type { JsonSchema } from '@overlay/model'

/** A schema whose form depends on one member. Each of its forms has a title. */
export interface Variable extends JsonSchema {
  readonly title: string
  readonly discriminator: { readonly propertyName: string }
  readonly oneOf: readonly Variant[]
}

interface Variant extends JsonSchema {
  readonly title: string
  readonly properties: Readonly<Record<string, JsonSchema>>
  readonly required?: readonly string[]
}

type Refer = (schema: JsonSchema) => { readonly $ref?: string }

export const isVariable = (schema: JsonSchema): schema is Variable => schema.discriminator instanceof Object

const wordsOf = ({ properties }: Variant, member: string): readonly string[] =>
  (properties[member]?.enum ?? []) as readonly string[]

/** In OpenAPI 3: one of several schemas, with the word that selects each. */
export function alternatives({ discriminator, oneOf }: Variable, refer: Refer): JsonSchema {
  const { propertyName } = discriminator
  const refs = oneOf.map((variant) => ({ words: wordsOf(variant, propertyName), ref: refer(variant) }))
  const mapping = Object.fromEntries(refs.flatMap(({ words, ref }) => words.map((word) => [word, ref.$ref])))
  return { type: 'object', discriminator: { propertyName, mapping }, oneOf: refs.map(({ ref }) => ref) }
}

/** In OpenAPI 2: a base with the shared members, and schemas that extend it. */
export function inheritance(schema: Variable, refer: Refer): JsonSchema {
  const { title, discriminator, oneOf } = schema
  const { propertyName } = discriminator
  const [first] = oneOf
  const shared = Object.keys(first?.properties ?? {}).filter((name) =>
    oneOf.every(({ properties }) => name in properties),
  )
  for (const { title: name, properties, required = [] } of oneOf) {
    const own = Object.entries(properties).filter(([member]) => !shared.includes(member))
    const rest = {
      type: 'object',
      properties: Object.fromEntries(own),
      required: required.filter((member) => !shared.includes(member)),
    }
    refer({
      title: name,
      allOf: [{ ...schema, title }, rest],
      'x-class': wordsOf({ title: name, properties }, propertyName)[0],
    })
  }
  const words = oneOf.flatMap((variant) => wordsOf(variant, propertyName))
  return {
    type: 'object',
    discriminator: propertyName,
    properties: {
      ...Object.fromEntries(shared.map((name) => [name, first?.properties[name] ?? {}])),
      [propertyName]: { type: 'string', enum: words },
    },
    required: (first?.required ?? []).filter((name) => shared.includes(name)),
  }
}

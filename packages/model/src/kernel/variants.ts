import { oneOf } from './schema.js'
import type { Entity } from './types.js'

/** For bodies: the kind with the fields of one variant and those of all, by the value that chooses the variant. */
export function variantsOf(entity: Entity): ReadonlyMap<string, Entity> {
  const { variants, fields, published } = entity
  const forms = Object.entries(variants?.of ?? {}).map(([word, { title, fields: own }]) => {
    const members = Object.entries(fields).flatMap(([name, field]) => {
      const write = own[name]
      if (write) return [[name, { ...field, write }] as const]
      if (!isOfEveryVariant(entity, name)) return []
      return [[name, name === variants?.by ? { ...field, schema: oneOf(word) } : field] as const]
    })
    const form: Entity = {
      ...entity,
      fields: Object.fromEntries(members),
      variants: undefined,
      published: { ...published, title: `${published.title}${title}` },
    }
    return [word, form] as const
  })
  return new Map(forms)
}

/** Whether every row has the field, whatever its variant. */
export const isOfEveryVariant = ({ variants }: Entity, name: string): boolean =>
  !Object.values(variants?.of ?? {}).some(({ fields }) => name in fields)

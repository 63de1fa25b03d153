import type { JsonSchema } from './schema.js'
import { tagsSchema } from './tags.js'
import type { Entity } from './types.js'

export type WriteOperation = 'create' | 'replace' | 'patch'

const places = { create: 0, replace: 1, patch: 2 } as const
const titles = { create: 'Create', replace: 'Update', patch: 'Patch' } as const

/** Names of the members that a body may have, nested ones with dots. */
export const writableMembers = (entity: Entity, operation: WriteOperation): readonly string[] => [
  ...Object.keys(entity.fields).filter((name) => letterOf(entity, name, operation) !== '-'),
  'tags',
]

const letterOf = ({ fields }: Entity, name: string, operation: WriteOperation): string =>
  fields[name]?.write[places[operation]] ?? '-'

interface ObjectSchema {
  readonly type: 'object'
  readonly properties: Record<string, JsonSchema>
  readonly required: string[]
}

const emptyObject = (): ObjectSchema => ({ type: 'object', properties: {}, required: [] })

/** Field names with dots are members of objects; an object is required when something in it is. */
export function bodySchemaOf(entity: Entity, operation: WriteOperation): JsonSchema {
  const root = emptyObject()
  for (const [name, field] of Object.entries(entity.fields)) {
    const letter = letterOf(entity, name, operation)
    if (letter === '-') continue
    const path = name.split('.')
    const leaf = path.pop() ?? name
    let object = root
    for (const part of path) {
      object.properties[part] ??= { ...emptyObject() }
      if (letter === 'R') require(object, part)
      object = object.properties[part] as unknown as ObjectSchema
    }
    object.properties[leaf] = field.schema
    if (letter === 'R') require(object, leaf)
  }
  root.properties.tags = tagsSchema
  return { title: `${entity.published.title}${titles[operation]}`, ...root }
}

function require(object: ObjectSchema, name: string): void {
  if (!object.required.includes(name)) object.required.push(name)
}

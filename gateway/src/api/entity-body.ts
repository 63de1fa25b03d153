import { type Entity, tagsSchema } from '@overlay/model'
import { Fault } from '@overlay/rpc'
import { type BodySpec, type JsonSchema, jsonBytes } from '../http/body.js'
import { baseNameOf } from '../openapi/names.js'

export interface EntityBody {
  readonly json: Buffer
  /** The fields that a replace or patch writes, nested ones with dots. */
  readonly mask: string[]
}

const positions = { create: 0, replace: 1, patch: 2 } as const
type Write = keyof typeof positions

const titles = { create: 'Create', replace: 'Update', patch: 'Patch' } as const

/** wire: what the documents call the body, where it is not the singular. */
const BODY_NAMES: Readonly<Record<string, string>> = {
  'service-policies': 'policy',
  'edge-router-policies': 'policy',
  'service-edge-router-policies': 'policy',
  routers: 'router',
  'transit-routers': 'router',
}

/** The body of a create, replace or patch of one kind, from its definition. */
export function entityBody(entity: Entity, write: Write): BodySpec<EntityBody> {
  const writable = [
    ...Object.keys(entity.fields).filter((name) => letterOf(entity, name, write) !== '-'),
    'tags',
  ]
  return {
    name: BODY_NAMES[entity.kind] ?? entity.singular,
    required: true,
    schema: schemaOf(entity, write),
    read(checked, sent) {
      const json = jsonBytes(checked)
      if (write === 'create') return { json, mask: [] }
      if (write === 'replace') return { json, mask: writable }
      const mask = writable.filter((name) => memberOf(checked, name) !== undefined)
      // differs: that nothing is set is the client's mistake; wire: members that nobody knows are not
      const others = Object.entries(sent ?? {}).filter(([, value]) => value !== null)
      if (mask.length === 0 && others.every(([name]) => isField(entity, name)))
        throw new Fault('COULD_NOT_VALIDATE', 'no fields to update')
      return { json, mask }
    },
  }
}

/** Bodies name members in any case. */
const isField = (entity: Entity, name: string): boolean =>
  Object.keys(entity.fields).some(
    (known) => known.toLowerCase() === name.toLowerCase() && letterOf(entity, known, 'create') !== '-',
  )

const letterOf = ({ fields }: Entity, name: string, write: Write): string =>
  fields[name]?.write[positions[write]] ?? '-'

interface ObjectSchema {
  readonly type: 'object'
  readonly properties: Record<string, JsonSchema>
  readonly required: string[]
}

const emptyObject = (): ObjectSchema => ({ type: 'object', properties: {}, required: [] })

/** Field names with dots are members of objects; an object is required when something in it is. */
export function schemaOf(entity: Entity, write: Write): JsonSchema {
  const root = emptyObject()
  for (const [name, field] of Object.entries(entity.fields)) {
    const letter = letterOf(entity, name, write)
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
  return { title: `${baseNameOf(entity)}${titles[write]}`, ...root }
}

function require(object: ObjectSchema, name: string): void {
  if (!object.required.includes(name)) object.required.push(name)
}

function memberOf(value: unknown, name: string): unknown {
  return name
    .split('.')
    .reduce<unknown>(
      (at, part) => (at === null || typeof at !== 'object' ? undefined : (at as Json)[part]),
      value,
    )
}

type Json = Readonly<Record<string, unknown>>

import type { Entity } from '@overlay/model'
import type { JsonSchema } from '../http/body.js'

const text = { type: 'string' }
const time = { type: 'string', format: 'date-time' }
export const links = {
  type: 'object',
  additionalProperties: { type: 'object', properties: { href: text } },
}
export const reference: JsonSchema = {
  title: 'reference',
  type: 'object',
  properties: { _links: links, entity: text, id: text, name: text },
}
const displayed: JsonSchema = {
  type: ['array', 'null'],
  items: { type: 'object', properties: { role: text, name: text } },
}

/** What reads of a kind show, for the served documents. */
export function listedSchemaOf(entity: Entity): JsonSchema {
  const properties: Record<string, unknown> = {
    id: text,
    createdAt: time,
    updatedAt: time,
    tags: { type: 'object', additionalProperties: true },
    _links: links,
  }
  for (const [name, field] of Object.entries(entity.fields)) {
    if (field.secret || field.hidden) continue
    put(properties, name.split('.'), field.schema)
    if (field.ref) put(properties, name.replace(/Id$/, '').split('.'), reference)
    if (field.rolesOf) put(properties, `${name}Display`.split('.'), displayed)
  }
  return { title: entity.singular, type: 'object', properties }
}

/** The same, where clients see less. */
export function clientSchemaOf(entity: Entity): JsonSchema {
  const { properties, ...rest } = listedSchemaOf(entity) as ObjectSchema & JsonSchema
  const seen = new Set([...ofEveryKind, ...(entity.clientSees ?? Object.keys(properties))])
  const less = Object.fromEntries(Object.entries(properties).filter(([name]) => seen.has(name)))
  return { ...rest, title: `${entity.singular}ForClients`, properties: less }
}

const ofEveryKind = ['id', 'createdAt', 'updatedAt', 'tags', '_links']

function put(
  properties: Record<string, unknown>,
  [name = '', ...rest]: readonly string[],
  schema: unknown,
): void {
  if (rest.length === 0) {
    properties[name] = schema
    return
  }
  const object = (properties[name] ?? { type: 'object', properties: {} }) as ObjectSchema
  properties[name] = object
  put(object.properties, rest, schema)
}

interface ObjectSchema {
  readonly properties: Record<string, unknown>
}

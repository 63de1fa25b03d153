import type { JsonSchema } from '../http/body.js'

/** Parts that the schemas of answers are made of. One with a title stands once in a document, under that name. */
export const text = { type: 'string' }
export const flag = { type: 'boolean' }
export const time = { type: 'string', format: 'date-time' }
export const whole = { type: 'integer' }
export const anything = { type: 'object', additionalProperties: true }

export type Members = Readonly<Record<string, JsonSchema>>

export const listOf = (items: JsonSchema): JsonSchema => ({ type: 'array', items })
export const mapOf = (values: JsonSchema): JsonSchema => ({ type: 'object', additionalProperties: values })
export const orNull = (schema: JsonSchema): JsonSchema => ({ ...schema, type: [schema.type, 'null'].flat() })
export const oneOf = (...values: readonly string[]): JsonSchema => ({ type: 'string', enum: values })

/** An object that has all members of the first sort, and some of the second. */
export const object = (always: Members, sometimes: Members = {}): JsonSchema => ({
  type: 'object',
  properties: { ...always, ...sometimes },
  required: Object.keys(always).filter((name) => !(name in sometimes)),
})

export const named = (title: string, schema: JsonSchema): JsonSchema => ({ title, ...schema })

export const links = named('links', mapOf(named('link', object({ href: text }))))
export const tags = named('tags', anything)

/** wire: what has no name, or is not there any more, is named by its id alone. */
export const reference = named('entityRef', object({ _links: links, entity: text, id: text }, { name: text }))

/** What a create answers. */
export const createLocation = named('createLocation', object({ _links: links, id: text }))

/** What every entity shows. */
export const ofEveryKind: Members = { id: text, createdAt: time, updatedAt: time, tags, _links: links }

declare const value: unique symbol

/** A JSON Schema as plain data. `T` is the type of the values that it admits; only the compiler sees it. */
export interface Schema<T = unknown> {
  readonly [keyword: string]: unknown
  readonly [value]?: T
}

export type JsonSchema = Schema
export type SchemaValue<S> = S extends Schema<infer T> ? T : never

export type Members = Readonly<Record<string, Schema>>
export type NoMembers = Readonly<Record<never, Schema>>

/** An object with all members of the first sort and any of the second. */
export type Shown<Always extends Members, Sometimes extends Members = NoMembers> = {
  readonly [M in Exclude<keyof Always, keyof Sometimes>]: SchemaValue<Always[M]>
} & { readonly [M in keyof Sometimes]?: SchemaValue<Sometimes[M]> | undefined }

export const text: Schema<string> = { type: 'string' }
export const flag: Schema<boolean> = { type: 'boolean' }
export const time: Schema<string> = { type: 'string', format: 'date-time' }
export const integer: Schema<number> = { type: 'integer' }
export const anyObject: Schema<object> = { type: 'object', additionalProperties: true }

export const listOf = <T>(items: Schema<T>): Schema<readonly T[]> => ({ type: 'array', items })

export const mapOf = <T>(values: Schema<T>): Schema<Readonly<Record<string, T>>> => ({
  type: 'object',
  additionalProperties: values,
})

export const orNull = <T>(schema: Schema<T>): Schema<T | null> =>
  ({ ...schema, type: [schema.type, 'null'].flat() }) as Schema<T | null>

export const oneOf = <const V extends string>(...values: readonly V[]): Schema<V> => ({
  type: 'string',
  enum: values,
})

/** `sometimes` takes precedence where a member is in both. */
export const object = <A extends Members, S extends Members = NoMembers>(
  always: A,
  sometimes: S = {} as S,
): Schema<Shown<A, S>> => ({
  type: 'object',
  properties: { ...always, ...sometimes },
  required: Object.keys(always).filter((name) => !(name in sometimes)),
})

/** Documents hold a schema with a title once, under that name, and refer to it. */
export const named = <T>(title: string, schema: Schema<T>): Schema<T> => ({ title, ...schema })

/** Texts under these names. */
export const texts = <N extends string>(...names: readonly N[]): { readonly [M in N]: Schema<string> } =>
  Object.fromEntries(names.map((name) => [name, text])) as { readonly [M in N]: Schema<string> }

/** One of several schemas, chosen by the value of one member. Each has a title. */
export const variable = (title: string, propertyName: string, oneOf: readonly JsonSchema[]): JsonSchema => ({
  title,
  type: 'object',
  discriminator: { propertyName },
  oneOf,
})

export const links = named('links', mapOf(named('link', object({ href: text }))))
export const tags = named('tags', anyObject)

/** wire: a reference to an entity that has no name, or is deleted, has no member `name`. */
export const reference = named('entityRef', object({ _links: links, entity: text, id: text }, { name: text }))

/** The answer of a create. */
export const createLocation = named('createLocation', object({ _links: links, id: text }))

/** Members of every entity. */
export const commonMembers = { id: text, createdAt: time, updatedAt: time, tags, _links: links }

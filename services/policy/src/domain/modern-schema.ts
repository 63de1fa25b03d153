export type Schema = Readonly<Record<string, unknown>>

/** Keywords that say something about a value themselves. Others, which the sources' validator ignores, are left out. */
const own = [
  '$ref',
  'const',
  'enum',
  'maxItems',
  'maxLength',
  'maxProperties',
  'minItems',
  'minLength',
  'minProperties',
  'multipleOf',
  'pattern',
  'required',
  'type',
  'uniqueItems',
]
const single = [
  'additionalItems',
  'additionalProperties',
  'contains',
  'else',
  'if',
  'items',
  'not',
  'propertyNames',
  'then',
]
const lists = ['allOf', 'anyOf', 'items', 'oneOf']
const maps = ['$defs', 'definitions', 'dependencies', 'patternProperties', 'properties']

/**
 * A schema of draft 4, 6 or 7 in the words of draft 7. wire: one may mix them, as in the sources' validator; which
 * draft it says it is does not matter. It has no ids, so that every reference starts at the root.
 */
export function modernSchema(schema: Schema): Schema {
  const { $id, id } = schema
  return modern(schema, typeof $id === 'string' ? $id : typeof id === 'string' ? id : '')
}

/** The schemas that a modern schema consists of. */
export function partsOf(schema: Schema): readonly unknown[] {
  return Object.entries(schema).flatMap(([key, value]) => {
    if (maps.includes(key) && isObject(value)) return Object.values(value)
    if (lists.includes(key) && Array.isArray(value)) return value
    return single.includes(key) ? [value] : []
  })
}

function modern(schema: Schema, rootId: string): Schema {
  const { minimum, maximum, exclusiveMinimum, exclusiveMaximum, $ref } = schema
  const members = Object.entries(schema).flatMap(([key, value]): [string, unknown][] => {
    if (own.includes(key)) return [[key, value]]
    return [...single, ...lists, ...maps].includes(key) ? [[key, below(key, value, rootId)]] : []
  })
  return {
    ...Object.fromEntries(members),
    ...(typeof $ref === 'string' && {
      $ref: $ref.startsWith(`${rootId}#`) ? $ref.slice(rootId.length) : $ref,
    }),
    ...limit('minimum', 'exclusiveMinimum', minimum, exclusiveMinimum),
    ...limit('maximum', 'exclusiveMaximum', maximum, exclusiveMaximum),
  }
}

/** Draft 4 has a flag where the later ones have a second limit. */
function limit(name: string, exclusive: string, value: unknown, flag: unknown): Schema {
  if (flag === true) return { [exclusive]: value }
  return {
    ...(value !== undefined && { [name]: value }),
    ...(flag !== undefined && flag !== false && { [exclusive]: flag }),
  }
}

function below(key: string, value: unknown, rootId: string): unknown {
  /** A schema may be a boolean. A dependency may be a list of names: ajv compiles that in quadratic time. */
  const schemaOr = (one: unknown): unknown => {
    if (key === 'dependencies' && Array.isArray(one)) return { required: one as unknown[] }
    return isObject(one) ? modern(one, rootId) : one
  }
  if (lists.includes(key) && Array.isArray(value)) return value.map(schemaOr)
  if (single.includes(key)) return schemaOr(value)
  if (maps.includes(key) && isObject(value))
    return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, schemaOr(inner)]))
  return value
}

export const isObject = (value: unknown): value is Schema =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

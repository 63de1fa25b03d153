export type Schema = Readonly<Record<string, unknown>>

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
 * draft it says it is does not matter.
 */
export function modernSchema(schema: Schema): Schema {
  const { $schema: _draft, id, exclusiveMinimum, exclusiveMaximum, ...rest } = schema
  const { minimum, maximum, ...others } = rest
  return {
    ...Object.fromEntries(Object.entries(others).map(([key, value]) => [key, below(key, value)])),
    ...(typeof id === 'string' && rest.$id === undefined && { $id: id }),
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

function below(key: string, value: unknown): unknown {
  if (lists.includes(key) && Array.isArray(value)) return value.map(schemaOr)
  if (single.includes(key)) return schemaOr(value)
  if (maps.includes(key) && isObject(value)) {
    return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, schemaOr(inner)]))
  }
  return value
}

/** A schema may be a boolean, and a dependency a list of names. */
const schemaOr = (value: unknown): unknown => (isObject(value) ? modernSchema(value) : value)

const isObject = (value: unknown): value is Schema =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

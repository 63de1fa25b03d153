import type { JsonSchema } from '@overlay/model'
import { memoized } from '@overlay/model'
import { Fault, invalid } from '@overlay/rpc'
import { Ajv, type ErrorObject } from 'ajv'
import formats from 'ajv-formats'
import { ALL_ERRORS_BYTES, MAX_CHARACTERS, MAX_ITEMS } from '../limits.js'

function validator(allErrors: boolean): Ajv {
  const ajv = new Ajv({ allErrors, strict: false, verbose: true, logger: false, discriminator: true })
  // The package is CommonJS: its function is the default export of the module, or a member of it.
  ;(typeof formats === 'function' ? formats : formats.default)(ajv)
  return ajv
}

const [untilFirst, untilLast] = [validator(false), validator(true)]

/** The schema with a limit on each list and text, and its checks. Collecting all errors costs more than a valid value. */
const checksOf = memoized((schema: JsonSchema) => {
  const bounded = boundedSchema(schema) as JsonSchema
  return { bounded, first: untilFirst.compile(bounded), all: untilLast.compile(bounded) }
})

function boundedSchema(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(boundedSchema)
  if (typeof schema !== 'object' || schema === null) return schema
  const { type } = schema as JsonSchema
  const types = [type].flat()
  return {
    ...(types.includes('array') && { maxItems: MAX_ITEMS }),
    ...(types.includes('string') && !('enum' in schema) && { maxLength: MAX_CHARACTERS }),
    ...Object.fromEntries(Object.entries(schema).map(([keyword, value]) => [keyword, boundedSchema(value)])),
  }
}

/**
 * Checks a value and returns the members that its schema describes, or the first violation of a limit. Throws if the
 * value does not have the form of the schema.
 * wire: null counts as absent, unless the member is required and may be null; an unknown member is not an error, and names
 * match in any case. differs: a reference, as reads show it, stands for its id.
 */
export function check(schema: JsonSchema, value: unknown, bytes: number): Checked {
  const { bounded, first, all } = checksOf(schema)
  const normalized = normalize(bounded, value ?? (schema.type === 'array' ? [] : {}))
  if (first(normalized)) return { value: normalized }
  if (bytes <= ALL_ERRORS_BYTES) all(normalized)
  const errors = (bytes > ALL_ERRORS_BYTES ? first : all).errors ?? []
  const ofForm = errors.filter((error) => !isLimit(error))
  if (ofForm.length > 0) throw refusalOf(ofForm)
  return { value: normalized, refusal: refusalOf(errors) }
}

/** A value of the right form. It may exceed a limit, which is reported only to callers with permission. */
export interface Checked {
  readonly value: unknown
  readonly refusal?: Fault
}

const LIMITS = new Set(['minLength', 'maxLength', 'maxItems', 'maxProperties', 'pattern'])

const isLimit = (error: ErrorObject): boolean => LIMITS.has(error.keyword) || isUntyped(error)

/** wire: an object whose members no keyword describes is read whatever its type, and refused by its name. */
const isUntyped = ({ keyword, parentSchema }: ErrorObject): boolean =>
  keyword === 'type' &&
  [parentSchema?.type].flat().includes('object') &&
  !['properties', 'additionalProperties', 'oneOf'].some((describing) => describing in (parentSchema ?? {}))

interface ObjectSchema {
  readonly properties?: Readonly<Record<string, JsonSchema>>
  readonly required?: readonly string[]
  readonly items?: JsonSchema
}

function normalize(schema: JsonSchema, value: unknown): unknown {
  const { properties, items, required = [] } = schema as ObjectSchema
  if (
    typeof value === 'number' &&
    Number.isInteger(value) &&
    !Number.isSafeInteger(value) &&
    admits(schema, 'integer')
  )
    throw new Fault('COULD_NOT_PARSE_BODY', 'a number is out of range')
  const variant = variantOf(schema, value)
  if (variant) return normalize(variant, value)
  if (properties && isObject(value)) {
    const memberOf = membersOf(value, properties)
    const members = Object.entries(properties).flatMap(([name, member]) => {
      const sent = memberOf(name)
      if (sent === null && required.includes(name) && admits(member, 'null')) return [[name, null] as const]
      return sent === undefined || sent === null ? [] : [[name, normalize(member, sent)] as const]
    })
    return Object.fromEntries(members)
  }
  if (isReference(value) && admits(schema, 'string')) return value.id
  if (items && Array.isArray(value) && value.length <= Number(schema.maxItems))
    return value.map((item) => normalize(items, item))
  return value
}

/** Finds a member by its name in any case: the original's command line sends `Type` and `Versions`. */
function membersOf(value: Json, properties: Readonly<Record<string, unknown>>): (name: string) => unknown {
  const unknownNames = Object.keys(value).filter((name) => !Object.hasOwn(properties, name))
  const folded = new Map(unknownNames.map((name) => [name.toLowerCase(), value[name]]))
  return (name) => (Object.hasOwn(value, name) ? value[name] : folded.get(name.toLowerCase()))
}

/** The variant that the discriminating member selects. */
function variantOf({ oneOf, discriminator }: JsonSchema, value: unknown): JsonSchema | undefined {
  if (!discriminator || !isObject(value)) return undefined
  const { propertyName } = discriminator as { propertyName: string }
  const discriminant = membersOf(value, { [propertyName]: true })(propertyName)
  return (oneOf as readonly Variant[]).find(({ properties }) =>
    properties[propertyName]?.enum?.includes(discriminant),
  )
}

type Variant = JsonSchema & {
  readonly properties: Readonly<Record<string, { readonly enum?: readonly unknown[] } | undefined>>
}

const admits = ({ type }: JsonSchema, name: string): boolean => [type].flat().includes(name)

type Json = Readonly<Record<string, unknown>>

const isObject = (value: unknown): value is Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const isReference = (value: unknown): value is { readonly id: string } =>
  isObject(value) && typeof value.entity === 'string' && typeof value.id === 'string'

/** wire: a wrong JSON type makes the whole body unreadable; else the first field by name is reported. */
function refusalOf(errors: readonly ErrorObject[]): Fault {
  const discriminator = errors.find(({ keyword }) => keyword === 'discriminator')
  if (discriminator) return unknownVariant(discriminator)
  const unreadable = errors.find(
    (error) => (error.keyword === 'type' && !isUntyped(error)) || error.params.format === 'date-time',
  )
  if (unreadable) {
    const where = fieldOf(unreadable) || 'the body'
    const { type, format } = unreadable.params as { type?: string | string[]; format?: string }
    const expected =
      format ??
      [type ?? []]
        .flat()
        .filter((name) => name !== 'null')
        .join(' or ')
    return new Fault('COULD_NOT_PARSE_BODY', `${where} cannot be read as ${expected}`)
  }
  const [first] = [...errors].sort((a, b) => (fieldOf(a) < fieldOf(b) ? -1 : fieldOf(a) > fieldOf(b) ? 1 : 0))
  if (!first) return new Fault('COULD_NOT_VALIDATE')
  const field = fieldOf(first)
  return invalid(
    field,
    `${field} in body ${reasonOf(first)}`,
    first.keyword === 'required' || first.keyword === 'maxItems' ? undefined : first.data,
  )
}

/** wire: an unknown discriminant makes the body unreadable, an absent one is a missing member. */
function unknownVariant(error: ErrorObject): Fault {
  const { tag, tagValue } = error.params as { tag: string; tagValue: unknown }
  const field = [...fieldOf(error).split('.'), tag].filter(Boolean).join('.')
  return tagValue === undefined
    ? invalid(field, `${field} in body is required`, '')
    : new Fault('COULD_NOT_PARSE_BODY', `${field} is not known: ${JSON.stringify(tagValue)}`)
}

/** Nested names have dots, array members their index: `primary.cert`, `0.configId`. */
function fieldOf({ instancePath, keyword, params }: ErrorObject): string {
  const parts = instancePath.split('/').slice(1).map(unescapePointer)
  if (keyword === 'required') parts.push((params as { missingProperty: string }).missingProperty)
  return parts.join('.')
}

const unescapePointer = (part: string): string => part.replaceAll('~1', '/').replaceAll('~0', '~')

/** wire: the wording of go-openapi/errors, behind `<field> in body`. */
function reasonOf({ keyword, params, schema, message }: ErrorObject): string {
  const { limit, format } = params as { limit?: number; format?: string }
  switch (keyword) {
    case 'required':
      return 'is required'
    case 'enum':
      return `should be one of [${(schema as readonly unknown[]).join(' ')}]`
    case 'minLength':
      return `should be at least ${limit} chars long`
    case 'maxLength':
      return `should be at most ${limit} chars long`
    case 'minimum':
      return `should be greater than or equal to ${limit}`
    case 'maximum':
      return `should be less than or equal to ${limit}`
    case 'minItems':
      return `should have at least ${limit} items`
    case 'maxItems':
      return `should have at most ${limit} items`
    case 'type':
      return 'must be of type object'
    case 'uniqueItems':
      return "shouldn't contain duplicates"
    case 'pattern':
      return `should match '${String(schema)}'`
    case 'format':
      return `must be of type ${format}`
    default:
      return message ?? 'is not valid'
  }
}

import { Ajv, type ErrorObject, type ValidateFunction } from 'ajv'
import { MOST_SCHEMA_BYTES } from '../limits.js'
import { canonicalJson } from './canonical-json.js'
import { openPatterns } from './linear-pattern.js'
import { modernSchema, type Schema } from './modern-schema.js'
import { openMeter, TooManySteps } from './schema-meter.js'

/** Why data does not fit its type. wire: only the first reason, with the texts of gojsonschema. */
export interface Misfit {
  readonly field: string
  readonly reason: string
  readonly value: unknown
}

export type Check = (data: unknown) => Misfit | undefined

/**
 * Throws when the schema is invalid, or may take unbounded time. Fetches nothing that it names. Cached: compiling takes a
 * hundred times as long as a check.
 */
export function compileSchema(schema: Schema): Check {
  const text = JSON.stringify(schema)
  const cached = compiled.get(text)
  if (cached) return cached
  if (Buffer.byteLength(text) > MOST_SCHEMA_BYTES)
    throw new Error(`takes more than ${MOST_SCHEMA_BYTES} bytes`)
  const check = compile(schema)
  for (const oldest of compiled.keys()) if (compiled.size >= most) compiled.delete(oldest)
  compiled.set(text, check)
  return check
}

const compiled = new Map<string, Check>()
const most = 200

function compile(schema: Schema): Check {
  const modern = modernSchema(schema)
  const meter = openMeter(modern)
  const patterns = openPatterns()
  // wire: an unknown keyword or format is ignored, and host names may be patterns
  const ajv = new Ajv({
    strict: false,
    validateFormats: false,
    verbose: true,
    logger: false,
    inlineRefs: false,
    code: { regExp: patterns.compile },
  })
  ajv.removeKeyword('uniqueItems')
  ajv.addKeyword({ keyword: 'uniqueItems', type: 'array', schemaType: 'boolean', validate: isSet })
  const validate = ajv.compile(modern)
  return (data) => {
    patterns.reset()
    try {
      meter(data)
      return misfitOf(validate, data)
    } catch (err) {
      if (err instanceof TooManySteps) return tooLarge
      throw err
    }
  }
}

const tooLarge: Misfit = {
  field: '(root)',
  reason: '(root) is invalid: (root): the data is too large to be checked by the schema of its type',
  value: '',
}

/** In one pass: the usual comparison of all pairs takes a minute for a large list. */
const isSet = (isRequired: boolean, list: readonly unknown[]): boolean =>
  !isRequired || new Set(list.map(canonicalJson)).size === list.length

function misfitOf(validate: ValidateFunction, data: unknown): Misfit | undefined {
  if (validate(data)) return undefined
  const [error] = validate.errors ?? []
  if (!error) throw new Error('data was refused without a reason')
  const field = error.instancePath.slice(1).replaceAll('/', '.') || '(root)'
  return { field, reason: `${field} is invalid: ${field}: ${messageOf(error)}`, value: error.data }
}

type Params = Readonly<Record<string, unknown>>

const messages: Readonly<Record<string, (params: Params, data: unknown) => string>> = {
  required: ({ missingProperty }) => `${missingProperty} is required`,
  additionalProperties: ({ additionalProperty }) =>
    `Additional property ${additionalProperty} is not allowed`,
  type: ({ type }, data) => `Invalid type. Expected: ${type}, given: ${typeOf(data)}`,
  minimum: ({ limit }) => `Must be greater than or equal to ${limit}`,
  maximum: ({ limit }) => `Must be less than or equal to ${limit}`,
  minLength: ({ limit }) => `String length must be greater than or equal to ${limit}`,
  maxLength: ({ limit }) => `String length must be less than or equal to ${limit}`,
  minItems: ({ limit }) => `Array must have at least ${limit} items`,
  maxItems: ({ limit }) => `Array must have at most ${limit} items`,
  uniqueItems: () => 'array items must be unique',
  pattern: ({ pattern }) => `Does not match pattern '${pattern}'`,
  if: ({ failingKeyword }) =>
    `Must validate "${failingKeyword}" as "if" was ${failingKeyword === 'then' ? 'valid' : 'not valid'}`,
}

function messageOf({ keyword, params, data, message }: ErrorObject): string {
  return messages[keyword]?.(params as Params, data) ?? message ?? keyword
}

function typeOf(data: unknown): string {
  if (data === null) return 'null'
  if (Array.isArray(data)) return 'array'
  return Number.isInteger(data) ? 'integer' : typeof data
}

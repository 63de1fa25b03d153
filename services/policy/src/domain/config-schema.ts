import { Ajv, type ErrorObject, type ValidateFunction } from 'ajv'
import { modernSchema, type Schema } from './modern-schema.js'

/** Why data does not fit its type. wire: only the first reason, in the words of the sources' validator. */
export interface Misfit {
  readonly field: string
  readonly reason: string
  readonly value: unknown
}

export type Check = (data: unknown) => Misfit | undefined

/** Throws when the schema is none. Nothing that it names is fetched. Made once: it takes a hundred times as long as its use. */
export function compileSchema(schema: Schema): Check {
  const text = JSON.stringify(schema)
  const known = compiled.get(text)
  if (known) return known
  const check = compile(schema)
  for (const oldest of compiled.keys()) if (compiled.size >= most) compiled.delete(oldest)
  compiled.set(text, check)
  return check
}

const compiled = new Map<string, Check>()
const most = 200

function compile(schema: Schema): Check {
  // wire: an unknown keyword or format is ignored, and host names may be patterns
  const ajv = new Ajv({
    strict: false,
    validateFormats: false,
    unicodeRegExp: false,
    verbose: true,
    logger: false,
  })
  const validate = ajv.compile(modernSchema(schema))
  return (data) => misfitOf(validate, data)
}

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

import type { JsonSchema } from '@overlay/model'
import { anyObject, createLocation, listOf, named, object, text } from '@overlay/model/schema'
import { faults } from '@overlay/rpc'
import {
  type Access,
  asEndpoint,
  type BodySpec,
  type Endpoint,
  type MountedApi,
  type Parameter,
} from '../http/exchange.js'
import { detailNameOf, operationIdOf, pageNameOf } from './names.js'

/** One operation, for both versions of the document. */
export interface Described {
  readonly method: string
  readonly path: string
  readonly operationId: string
  readonly tag: string
  readonly summary: string
  readonly access: Access
  readonly pathParameters: readonly string[]
  readonly query: readonly Parameter[]
  readonly headers: readonly Parameter[]
  readonly body: BodySpec | undefined
  readonly status: number
  /** The media types of a successful answer, each with its schema. */
  readonly answers: Readonly<Record<string, JsonSchema>>
  readonly refusals: readonly number[]
}

const admits: Readonly<Record<Access, string>> = {
  none: 'Open to everybody.',
  partial: 'Needs a session; a second factor may be outstanding.',
  full: 'Needs a session.',
  admin: 'Needs the session of an admin.',
}

const verbs: Readonly<Record<string, string>> = {
  GET: 'Read',
  POST: 'Create or act on',
  PUT: 'Replace',
  PATCH: 'Change',
  DELETE: 'Delete',
}

export function describe({ operations, handlers }: MountedApi): Described[] {
  return Object.entries(operations).map(([operation, access]) => {
    const [method = '', path = ''] = operation.split(' ')
    const endpoint = asEndpoint(handlers[operation] ?? missing(operation))
    const { query = [], headers = [], body, response } = endpoint
    const words = path.split('/').filter((part) => part !== '' && !part.startsWith('{'))
    return {
      method: method.toLowerCase(),
      path,
      operationId: operationIdOf(operation),
      tag: words[0] ?? 'informational',
      summary: `${verbs[method] ?? method} ${words.join(' / ') || 'the version'}. ${admits[access]}`,
      access,
      pathParameters: [...path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => name),
      query,
      headers,
      body,
      status: response?.status ?? 200,
      answers: answersOf(endpoint),
      refusals: refusalsOf(method, path, access, response?.fails),
    }
  })
}

function missing(operation: string): never {
  throw new Error(`${operation} has no handler`)
}

const JSON_TYPE = 'application/json'

/** Of several types, JSON alone has an envelope, if its data is described. */
function answersOf({ produces, response }: Endpoint): Described['answers'] {
  if (!produces) return { [response?.type ?? JSON_TYPE]: envelopeOf(response) }
  const json = response?.data ? envelopeOf(response) : anyObject
  const schemaOf = (type: string): JsonSchema =>
    type === JSON_TYPE ? json : type.endsWith('/yaml') ? anyObject : text
  return Object.fromEntries(produces.map((type) => [type, schemaOf(type)]))
}

/** Statuses of refusals: by permission, input, missing and conflicting entities, and load. */
function refusalsOf(
  method: string,
  path: string,
  access: Access,
  fails: readonly number[] | undefined,
): readonly number[] {
  const isWrite = method !== 'GET' && access !== 'none'
  const statuses = [
    400,
    ...(access === 'none' ? [] : [401]),
    ...(isWrite || path.includes('{') ? [404] : []),
    ...(isWrite ? [409] : []),
    ...(fails ?? []),
    429,
    503,
  ]
  return [...new Set(statuses)].sort((a, b) => a - b)
}

const integer = { type: 'integer', format: 'int64' }

const meta = named(
  'meta',
  object(
    {},
    {
      apiEnrollmentVersion: text,
      apiVersion: text,
      filterableFields: listOf(text),
      pagination: named('pagination', object({ limit: integer, offset: integer, totalCount: integer })),
    },
  ),
)
const noMeta = { type: ['object', 'null'], enum: [null] }
const nothing = object({})

function envelopeOf(response: Endpoint['response']): JsonSchema {
  const { status, data, page, bare, envelope } = response ?? {}
  const around = (shown: JsonSchema): JsonSchema =>
    object({ data: shown, meta: response?.meta === null ? noMeta : meta })
  if (!data)
    return status === 201 ? named('createEnvelope', around(createLocation)) : named('empty', around(nothing))
  if (bare) return data
  const base = typeof data.title === 'string' ? data.title.replace(/Detail$/, '') : undefined
  const title = envelope ?? (base && (page ? pageNameOf(base) : detailNameOf(base)))
  const rows = base ? named(`${base}List`, listOf(data)) : listOf(data)
  const whole = around(page ? rows : data)
  return title ? named(title, whole) : whole
}

const cause = named('apiErrorCause', {
  ...object({}, { code: text, message: text, field: text, reason: text, value: text }),
  additionalProperties: true,
})

export const errorEnvelope = named(
  'apiErrorEnvelope',
  object({
    error: named(
      'apiError',
      object(
        { code: { type: 'string', enum: Object.keys(faults) }, message: text, requestId: text },
        { cause },
      ),
    ),
    meta,
  }),
)

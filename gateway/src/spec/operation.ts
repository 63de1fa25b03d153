import type { Access } from '../api/operations.js'
import type { BodySpec, JsonSchema } from '../http/body.js'
import { asEndpoint } from '../http/endpoint.js'
import type { MountedApi } from '../http/frame.js'
import type { Parameter } from '../http/query.js'

/** One operation, in the words that both forms of the document share. */
export interface Described {
  readonly method: string
  readonly path: string
  readonly operationId: string
  readonly tag: string
  readonly summary: string
  readonly access: Access
  readonly pathParameters: readonly string[]
  readonly query: readonly Parameter[]
  readonly body: BodySpec | undefined
  readonly produces: readonly string[] | undefined
  readonly status: number
  readonly answer: JsonSchema | undefined
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
    const { query = [], body, produces, about } = asEndpoint(handlers[operation] ?? missing(operation))
    const words = path.split('/').filter((part) => part !== '' && !part.startsWith('{'))
    return {
      method: method.toLowerCase(),
      path,
      operationId: `${method.toLowerCase()}${
        path
          .split(/[^A-Za-z]+/)
          .map(capital)
          .join('') || 'Root'
      }`,
      tag: words[0] ?? 'informational',
      summary: `${verbs[method] ?? method} ${words.join(' / ') || 'the version'}. ${admits[access]}`,
      access,
      pathParameters: [...path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => name),
      query,
      body,
      produces,
      status: about?.status ?? 200,
      answer: produces ? undefined : envelope(about),
    }
  })
}

function missing(operation: string): never {
  throw new Error(`${operation} has no handler`)
}

const capital = (word: string): string => word.charAt(0).toUpperCase() + word.slice(1)

const text = { type: 'string' }
const integer = { type: 'integer', format: 'int64' }

const pageMeta: JsonSchema = {
  title: 'pageMeta',
  type: 'object',
  properties: {
    filterableFields: { type: 'array', items: text },
    pagination: { type: 'object', properties: { limit: integer, offset: integer, totalCount: integer } },
  },
}

const madeEntity: JsonSchema = {
  title: 'created',
  type: 'object',
  properties: { _links: { type: 'object', additionalProperties: true }, id: text },
}

function envelope(about: { status?: number; data?: JsonSchema; page?: true } | undefined): JsonSchema {
  const data = about?.data ?? (about?.status === 201 ? madeEntity : { type: 'object' })
  const properties = about?.page
    ? { data: { type: 'array', items: data }, meta: pageMeta }
    : { data, meta: { type: 'object' } }
  return { type: 'object', properties }
}

export const errorEnvelope: JsonSchema = {
  title: 'error',
  type: 'object',
  properties: {
    error: {
      type: 'object',
      properties: {
        code: text,
        message: text,
        requestId: text,
        cause: {
          type: 'object',
          properties: { code: text, message: text, field: text, reason: text, value: text },
          additionalProperties: true,
        },
      },
    },
    meta: { type: 'object', properties: { apiEnrollmentVersion: text, apiVersion: text } },
  },
}

import { API_VERSION } from '../about.js'
import type { JsonSchema } from '../http/body.js'
import type { MountedApi } from '../http/frame.js'
import { type Api, rootOf } from '../http/paths.js'
import type { Parameter } from '../http/query.js'
import { type Described, describe, errorEnvelope } from './operation.js'

const titles: Readonly<Record<Api, string>> = {
  client: 'Client API of the overlay network controller',
  management: 'Management API of the overlay network controller',
}

const info = (api: Api) => ({
  title: titles[api],
  version: API_VERSION,
  description: 'Generated from the operations, definitions and checks that this controller runs.',
})

/** Schemas with a title stand once, and are referred to. */
function collector(prefix: string, nullable: string) {
  const collected: Record<string, unknown> = {}
  const refer = (schema: JsonSchema): unknown => {
    const { title, ...rest } = schema
    if (typeof title !== 'string') return inline(rest)
    if (!(title in collected)) {
      collected[title] = {} // stands before its members are walked
      collected[title] = inline(rest)
    }
    return { $ref: `${prefix}${title}` }
  }
  const inline = (schema: JsonSchema): Record<string, unknown> => {
    const shown: Record<string, unknown> = {}
    for (const [keyword, value] of Object.entries(schema)) {
      if (keyword === 'type' && Array.isArray(value)) {
        shown.type = value.find((name) => name !== 'null')
        if (value.includes('null')) shown[nullable] = true
      } else if (keyword === 'properties')
        shown.properties = Object.fromEntries(
          Object.entries(value as Record<string, JsonSchema>).map(([name, member]) => [name, refer(member)]),
        )
      else if (keyword === 'required' && (value as readonly string[]).length === 0) continue
      else if (keyword === 'items' || (keyword === 'additionalProperties' && typeof value === 'object'))
        shown[keyword] = refer(value as JsonSchema)
      else shown[keyword] = value
    }
    return shown
  }
  return { collected, refer }
}

const typeOf = ({ type, oneOf, format }: Parameter): Record<string, unknown> => ({
  ...(type === 'strings' ? { type: 'array', items: { type: 'string' } } : { type }),
  ...(oneOf && { enum: oneOf }),
  ...(format && { format }),
})

function pathsOf(api: MountedApi, render: (operation: Described) => object): Record<string, object> {
  const paths: Record<string, Record<string, object>> = {}
  for (const operation of describe(api)) {
    paths[operation.path] = { ...paths[operation.path], [operation.method]: render(operation) }
  }
  return paths
}

export function openApi2(api: MountedApi, address: string): object {
  const { collected, refer } = collector('#/definitions/', 'x-nullable')
  const failed = { description: 'Refused, and why', schema: refer(errorEnvelope) }
  const paths = pathsOf(api, ({ access, pathParameters, query, body, answer, produces, ...operation }) => ({
    operationId: operation.operationId,
    summary: operation.summary,
    tags: [operation.tag],
    security: access === 'none' ? [] : [{ ztSession: [] }],
    ...(body?.consumes && { consumes: body.consumes }),
    ...(produces && { produces }),
    parameters: [
      ...pathParameters.map((name) => ({ name, in: 'path', required: true, type: 'string' })),
      ...query.map((parameter) => ({
        name: parameter.name,
        in: 'query',
        description: parameter.about,
        ...(parameter.required && { required: true }),
        ...typeOf(parameter),
        ...(parameter.type === 'strings' && { collectionFormat: 'multi' }),
      })),
      ...(body ? [{ name: body.name, in: 'body', required: body.required, schema: refer(body.schema) }] : []),
    ],
    responses: {
      [operation.status]: { description: 'Done', ...(answer && { schema: refer(answer) }) },
      default: failed,
    },
  }))
  return {
    swagger: '2.0',
    info: info(api.api),
    host: address,
    basePath: rootOf(api.api),
    schemes: ['https'],
    consumes: ['application/json'],
    produces: ['application/json'],
    securityDefinitions: { ztSession: { type: 'apiKey', in: 'header', name: 'zt-session' } },
    paths,
    definitions: collected,
  }
}

export function openApi3(api: MountedApi, address: string): object {
  const { collected, refer } = collector('#/components/schemas/', 'nullable')
  const content = (types: readonly string[], schema: unknown) =>
    Object.fromEntries(types.map((type) => [type, { schema }]))
  const json = ['application/json']
  const failed = { description: 'Refused, and why', content: content(json, refer(errorEnvelope)) }
  const paths = pathsOf(api, ({ access, pathParameters, query, body, answer, produces, ...operation }) => ({
    operationId: operation.operationId,
    summary: operation.summary,
    tags: [operation.tag],
    security: access === 'none' ? [] : [{ ztSession: [] }],
    parameters: [
      ...pathParameters.map((name) => ({ name, in: 'path', required: true, schema: { type: 'string' } })),
      ...query.map((parameter) => ({
        name: parameter.name,
        in: 'query',
        description: parameter.about,
        ...(parameter.required && { required: true }),
        schema: typeOf(parameter),
      })),
    ],
    ...(body && {
      requestBody: { required: body.required, content: content(body.consumes ?? json, refer(body.schema)) },
    }),
    responses: {
      [operation.status]: {
        description: 'Done',
        content: content(produces ?? json, answer ? refer(answer) : { type: 'string' }),
      },
      default: failed,
    },
  }))
  return {
    openapi: '3.0.3',
    info: info(api.api),
    servers: [{ url: `https://${address}${rootOf(api.api)}` }],
    paths,
    components: {
      securitySchemes: { ztSession: { type: 'apiKey', in: 'header', name: 'zt-session' } },
      schemas: collected,
    },
  }
}

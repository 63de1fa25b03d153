import type { JsonSchema } from '@overlay/model'
import type { MountedApi, Parameter } from '../http/exchange.js'
import { type Api, rootOf } from '../http/paths.js'
import { API_VERSION } from '../http/version.js'
import { collector } from './collector.js'
import { type Described, describe, errorEnvelope } from './operation.js'
import { alternatives, inheritance } from './variants.js'

export const titles: Readonly<Record<Api, string>> = {
  client: 'Client API of the overlay network controller',
  management: 'Management API of the overlay network controller',
  fabric: 'Fabric API of the overlay network controller',
  audit: 'Audit API of the overlay network controller',
}

const info = (api: Api) => ({
  title: titles[api],
  version: API_VERSION,
  description: 'Generated from the operations, definitions and checks that this controller runs.',
})

const typeOf = ({ type, oneOf, format }: Parameter) => ({
  ...(type === 'strings' ? { type: 'array', items: { type: 'string' } } : { type }),
  ...(oneOf && { enum: oneOf }),
  ...(format && { format }),
})

function pathsOf(api: MountedApi<Api>, render: (operation: Described) => object): Record<string, object> {
  const paths: Record<string, Record<string, object>> = {}
  for (const operation of describe(api)) {
    paths[operation.path] = { ...paths[operation.path], [operation.method]: render(operation) }
  }
  return paths
}

const headOf = ({ operationId, summary, tag, access }: Omit<Described, 'body' | 'answers'>) => ({
  operationId,
  summary,
  tags: [tag],
  security: access === 'none' ? [] : [{ ztSession: [] }],
})

const parametersOf = (
  { pathParameters, query, headers }: Pick<Described, 'pathParameters' | 'query' | 'headers'>,
  typed: (type: object) => object,
) => [
  ...pathParameters.map((name) => ({ name, in: 'path', required: true, ...typed({ type: 'string' }) })),
  ...Object.entries({ query, header: headers }).flatMap(([place, parameters]) =>
    parameters.map((parameter) => ({
      name: parameter.name,
      in: place,
      description: parameter.description,
      ...(parameter.required && { required: true }),
      ...typed(typeOf(parameter)),
    })),
  ),
]

const JSON_TYPE = 'application/json'
const text: JsonSchema = { type: 'string' }

/** The schema describes JSON; bodies of other types are text. */
const inTypes = (types: readonly string[], schema: JsonSchema): readonly (readonly [string, JsonSchema])[] =>
  types.map((type) => [type, type.startsWith(JSON_TYPE) ? schema : text])

const refusalTexts: Readonly<Record<number, string>> = {
  400: 'The request is not valid',
  401: 'There is no session, or it may not do this',
  404: 'What the request is about, or refers to, does not exist',
  409: 'What the request wants is in conflict with what there is',
  429: 'Too many requests are waiting',
  503: 'A component of the controller does not answer in time',
}

export function openApi2(api: MountedApi<Api>, address: string): object {
  const { definitions, refer } = collector(api.api, '#/definitions/', 'x-nullable', inheritance)
  const refusals = (statuses: readonly number[]) =>
    statuses.map((status) => [status, { description: refusalTexts[status], schema: refer(errorEnvelope) }])
  const paths = pathsOf(api, (operation) => {
    const { body, answers } = operation
    const types = Object.keys(answers)
    const [answer = text] = types.length > 1 ? [] : Object.values(answers)
    return {
      ...headOf(operation),
      ...(body?.consumes && { consumes: body.consumes }),
      ...(types.join() !== JSON_TYPE && { produces: types }),
      parameters: [
        ...parametersOf(operation, (type) => ({
          ...type,
          ...('items' in type && { collectionFormat: 'multi' }),
        })),
        ...[body ?? []].flat().map(({ name, required, consumes, schema }) => ({
          name,
          in: 'body',
          required,
          schema: refer(consumes ? text : schema),
        })),
      ],
      responses: {
        [operation.status]: { description: 'Done', schema: refer(answer) },
        ...Object.fromEntries(refusals(operation.refusals)),
      },
    }
  })
  return {
    swagger: '2.0',
    info: info(api.api),
    host: address,
    basePath: rootOf(api.api),
    schemes: ['https'],
    consumes: [JSON_TYPE],
    produces: [JSON_TYPE],
    securityDefinitions: { ztSession: { type: 'apiKey', in: 'header', name: 'zt-session' } },
    paths,
    definitions,
  }
}

export function openApi3(api: MountedApi<Api>, address: string): object {
  const { definitions, refer } = collector(api.api, '#/components/schemas/', 'nullable', alternatives)
  const content = (schemas: readonly (readonly [string, JsonSchema])[]) =>
    Object.fromEntries(schemas.map(([type, schema]) => [type, { schema: refer(schema) }]))
  const refusals = (statuses: readonly number[]) =>
    statuses.map((status) => [
      status,
      { description: refusalTexts[status], content: content([[JSON_TYPE, errorEnvelope]]) },
    ])
  const paths = pathsOf(api, ({ body, answers, ...operation }) => ({
    ...headOf(operation),
    parameters: parametersOf(operation, (schema) => ({ schema })),
    ...(body && {
      requestBody: {
        required: body.required,
        content: content(inTypes(body.consumes ?? [JSON_TYPE], body.schema)),
      },
    }),
    responses: {
      [operation.status]: { description: 'Done', content: content(Object.entries(answers)) },
      ...Object.fromEntries(refusals(operation.refusals)),
    },
  }))
  return {
    openapi: '3.0.3',
    info: info(api.api),
    servers: [{ url: `https://${address}${rootOf(api.api)}` }],
    paths,
    components: {
      securitySchemes: { ztSession: { type: 'apiKey', in: 'header', name: 'zt-session' } },
      schemas: definitions,
    },
  }
}

/** JSON data in block style. Names and texts are quoted as JSON quotes them, which YAML reads the same. */
export function yamlOf(value: unknown, indent = ''): string {
  if (typeof value !== 'object' || value === null) return ` ${JSON.stringify(value)}\n`
  const inner = `${indent}  `
  const lines = Array.isArray(value)
    ? value.map((item) => `${indent}-${yamlOf(item, inner)}`)
    : Object.entries(value)
        .filter(([, member]) => member !== undefined)
        .map(([name, member]) => `${indent}${JSON.stringify(name)}:${yamlOf(member, inner)}`)
  if (lines.length > 0) return `\n${lines.join('')}`
  return Array.isArray(value) ? ' []\n' : ' {}\n'
}

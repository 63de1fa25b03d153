import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { operations as all } from '../../../test-e2e/published.js'
import { startGateway, type TestGateway } from '../../testing/gateway.js'
import { client, management } from '../api/operations.js'

interface Names {
  readonly query: readonly string[]
  readonly body?: readonly [name: string, definition: string | null]
  readonly answer?: string
}

interface Operation {
  readonly operationId: string
  readonly parameters: readonly { readonly in: string; readonly name: string; readonly schema?: Reference }[]
  readonly responses: Readonly<Record<string, { readonly schema?: Reference }>>
}

type Reference = { readonly $ref?: string }
type Paths = Readonly<Record<string, Readonly<Record<string, Operation>>>>

const capture = (name: string): unknown =>
  JSON.parse(readFileSync(new URL(`../../../test-e2e/captures/${name}.json`, import.meta.url), 'utf8'))
const named = capture('names') as Readonly<Record<string, Readonly<Record<string, Names>>>>

/** Where the published documents name something else than what is answered. */
const misnamed: Readonly<Record<string, string>> = {
  'GET /edge-routers/{id}/service-edge-router-policies': 'listServiceEdgeRouterPoliciesEnvelope',
  'GET /specs/{id}/spec': '', // the document itself, without an envelope
}

const missing = { operationId: '', parameters: [], responses: {} }

let gateway: TestGateway
beforeAll(async () => {
  gateway = await startGateway()
})
afterAll(() => gateway[Symbol.asyncDispose]())

const specOf = (api: string, version: string) =>
  gateway.request(`/edge/${api}/v1/specs/edge-${api}/spec?version=${version}`, {
    headers: { accept: 'application/json' },
  })

describe.each([
  ['client', client],
  ['management', management],
])('the document of the %s API', (api, operations) => {
  test.each(['2', '3'])('is there in OpenAPI %s, with every operation', async (version) => {
    const { json } = await specOf(api, version)
    const { swagger, openapi, paths } = json as { swagger?: string; openapi?: string; paths: Paths }
    expect((swagger ?? openapi)?.charAt(0)).toBe(version)
    const shown = Object.entries(paths).flatMap(([path, methods]) =>
      Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
    )
    expect(shown.sort()).toEqual(Object.keys(operations).sort())
  })

  test('names operations, parameters, bodies and answers as the published one does', async () => {
    const { paths } = (await specOf(api, '2')).json as { paths: Paths }
    const shown: Record<string, unknown> = {}
    const expected: Record<string, unknown> = {}
    for (const operation of Object.keys(operations)) {
      const [method = '', path = ''] = operation.split(' ')
      const { operationId, parameters, responses } = (paths[path]?.[method.toLowerCase()] ??
        missing) as Operation
      const { query = [], body, answer } = named[api]?.[operation] ?? {}
      const bodyParameter = parameters.find((parameter) => parameter.in === 'body')
      const success = Object.entries(responses).find(([status]) => status < '300')?.[1]
      shown[operation] = {
        operationId,
        query: query.filter((name) => parameters.some((parameter) => parameter.name === name)),
        ...(body && { body: [bodyParameter?.name, body[1] && nameIn(bodyParameter)] }),
        ...(answer && { answer: nameIn(success) }),
      }
      expected[operation] = {
        operationId: all.find((o) => o.api === api && o.method === method && o.path === path)?.id,
        query,
        ...(body && { body }),
        ...(answer && { answer: misnamed[operation] ?? answer }),
      }
    }
    expect(shown).toEqual(expected)
  })
})

const nameIn = (holder: { readonly schema?: Reference } | undefined): string =>
  holder?.schema?.$ref?.split('/').pop() ?? ''

describe('a schema whose form follows one member', () => {
  type Schemas = Readonly<Record<string, Record<string, unknown>>>
  const words = ['OS', 'DOMAIN', 'MAC', 'PROCESS', 'PROCESS_MULTI', 'MFA']

  test.each(['Create', 'Update', 'Patch', 'Detail'])(
    'is in OpenAPI 2 what others build on, each with its word: %s',
    async (what) => {
      const { definitions } = (await specOf('management', '2')).json as {
        definitions: Schemas
      }
      const base = definitions[`postureCheck${what}`]
      expect(base).toMatchObject({ discriminator: 'typeId', required: expect.arrayContaining(['typeId']) })
      const ref = `#/definitions/postureCheck${what}`
      const built = Object.values(definitions).filter(
        ({ allOf }) => (allOf as readonly Reference[] | undefined)?.[0]?.$ref === ref,
      )
      expect(built.map((definition) => definition['x-class']).sort()).toEqual([...words].sort())
      const domain = definitions[`postureCheckDomain${what}`]?.allOf as readonly unknown[]
      expect(domain[1]).toMatchObject({ properties: { domains: { type: 'array' } } })
      expect(Object.keys((base?.properties ?? {}) as object)).not.toContain('domains')
    },
  )

  test('is in OpenAPI 3 one of several, and says which word stands for which', async () => {
    const { components } = (await specOf('management', '3')).json as {
      components: { schemas: Schemas }
    }
    const { oneOf, discriminator } = components.schemas.postureCheckCreate ?? {}
    const { mapping } = discriminator as { mapping: Readonly<Record<string, string>> }
    expect(Object.keys(mapping).sort()).toEqual([...words].sort())
    expect(mapping.MAC).toBe('#/components/schemas/postureCheckMacAddressCreate')
    expect(oneOf).toContainEqual({ $ref: mapping.MAC })
  })
})

import { execFile } from 'node:child_process'
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { MethodDefinition, ServiceDefinition } from '@grpc/grpc-js'
import { loadSync } from '@grpc/proto-loader'
import { describe, expect, test } from 'vitest'
import { retryableMethods } from './method-table.js'

const root = join(import.meta.dirname, '../../..')

async function textsBelow(dir: string): Promise<Map<string, string>> {
  const entries = await readdir(dir, { recursive: true, withFileTypes: true })
  const files = entries
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => join(parentPath, name))
  const texts = files.map(async (file) => [file.slice(dir.length), await readFile(file, 'utf8')] as const)
  return new Map(await Promise.all(texts))
}

test('the generated code is up to date with proto/', async () => {
  const fresh = await mkdtemp(join(tmpdir(), 'gen-'))
  try {
    await promisify(execFile)('sh', [join(root, 'scripts/generate.sh'), fresh])
    for (const gen of ['packages/rpc/src/gen', 'packages/channel/src/gen'])
      expect(await textsBelow(join(fresh, gen))).toEqual(await textsBelow(join(root, gen)))
  } finally {
    await rm(fresh, { recursive: true })
  }
})

/** The same files as another implementation of protocol buffers reads them. */
const protos = [...(await textsBelow(join(root, 'proto'))).keys()]
  .map((file) => file.slice(1))
  .filter((file) => file.endsWith('.proto') && !file.startsWith('overlay/ctrl/')) // no methods: messages of the control channel
const definitions = loadSync(protos, { includeDirs: [join(root, 'proto')], longs: Number, enums: Number })
const services = Object.entries(definitions).flatMap(([name, definition]) =>
  'format' in definition ? [] : [[name, definition as ServiceDefinition] as const],
)

describe.each(services)('%s', (name, theirs) => {
  const scope = name.slice(0, name.lastIndexOf('.'))

  test('has the same methods, paths and streams in the generated code', async () => {
    const ours = await generated(name)
    const shape = (definition: ServiceDefinition) =>
      Object.values<AnyMethod>(definition)
        .map(({ path, requestStream, responseStream }) => ({ path, requestStream, responseStream }))
        .sort((a, b) => (a.path < b.path ? -1 : 1))
    expect(shape(ours)).toEqual(shape(theirs))
  })

  test.each(Object.keys(theirs))('%s has the same messages', async (method) => {
    const their = theirs[method] as AnyMethod & { requestType: Message; responseType: Message }
    const our = Object.values<AnyMethod>(await generated(name)).find(({ path }) => path === their.path)
    if (!our) throw new Error('not generated')
    const request = sample(their.requestType, scope)
    const encodedRequest = our.requestSerialize(our.requestDeserialize(their.requestSerialize(request)))
    expect(their.requestDeserialize(encodedRequest)).toEqual(request)
    const response = sample(their.responseType, scope)
    const encodedResponse = our.responseSerialize(our.responseDeserialize(their.responseSerialize(response)))
    expect(their.responseDeserialize(encodedResponse)).toEqual(response)
  })
})

test('methods that may be repeated do not stream', () => {
  const unary = services.flatMap(([, definition]) =>
    Object.values<AnyMethod>(definition)
      .filter(({ requestStream, responseStream }) => !requestStream && !responseStream)
      .map(({ path }) => path),
  )
  expect(unary).toEqual(expect.arrayContaining([...retryableMethods]))
})

type AnyMethod = MethodDefinition<unknown, unknown>

async function generated(name: string): Promise<ServiceDefinition> {
  const [root, area, version, service] = name.split('.')
  const module: Record<string, unknown> = await import(`./gen/${root}/${area}/${version}/${area}.ts`)
  return module[`${service}Service`] as ServiceDefinition
}

interface Field {
  readonly name: string
  readonly type: string
  readonly typeName: string
  readonly label: string
  readonly number: number
}
interface Descriptor {
  readonly name: string
  readonly field: readonly Field[]
  readonly nestedType: readonly Descriptor[]
  readonly options: { readonly mapEntry?: boolean } | null
}
interface Message {
  readonly type: Descriptor
}

/** A message with every field set, each to a different value. */
function sample({ type }: Message, scope: string): Record<string, unknown> {
  const fields = type.field.map((field) => {
    const entry = type.nestedType.find(({ name, options }) => name === field.typeName && options?.mapEntry)
    if (entry) return [field.name, { [field.name]: sampleOf(fieldNamed(entry, 'value'), scope) }]
    const value = sampleOf(field, scope)
    return [field.name, field.label === 'LABEL_REPEATED' ? [value, value] : value]
  })
  return Object.fromEntries(fields)
}

function sampleOf({ name, number, type, typeName }: Field, scope: string): unknown {
  switch (type) {
    case 'TYPE_STRING':
      return `${name} é`
    case 'TYPE_BYTES':
      return Buffer.from(name)
    case 'TYPE_BOOL':
      return true
    case 'TYPE_UINT32':
    case 'TYPE_INT32':
      return number
    case 'TYPE_INT64':
      return 2 ** 40 + number
    case 'TYPE_ENUM':
      return 1
    case 'TYPE_MESSAGE':
      return sample(messageNamed(typeName, scope), scope)
    default:
      throw new Error(`no sample of ${type}`)
  }
}

/** Resolves a relative name: in the same package, or else as the only name that ends so. */
function messageNamed(name: string, scope: string): Message {
  const [match, ...others] = Object.keys(definitions).filter((full) => full.endsWith(`.${name}`))
  const full = `${scope}.${name}` in definitions ? `${scope}.${name}` : match
  if (full === undefined || (full === match && others.length > 0))
    throw new Error(`which message is '${name}'?`)
  return definitions[full] as unknown as Message
}

function fieldNamed({ field: fields }: Descriptor, name: string): Field {
  const field = fields.find((one) => one.name === name)
  if (!field) throw new Error(`no field '${name}'`)
  return field
}

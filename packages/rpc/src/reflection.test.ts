import { join } from 'node:path'
import {
  Client,
  credentials,
  type MethodDefinition,
  Server,
  ServerCredentials,
  type ServiceDefinition,
  status,
} from '@grpc/grpc-js'
import { loadSync } from '@grpc/proto-loader'
import pino from 'pino'
import { expect, onTestFinished, test } from 'vitest'
import { ChangeServiceService } from './gen/overlay/change/v1/change.js'
import { openServiceHost } from './host.js'
import { reflection } from './reflection.js'

const protos = join(import.meta.dirname, '../node_modules/@grpc/reflection/build/proto')
const options = { includeDirs: [protos], longs: String, enums: String, defaults: true, oneofs: true }
const versions = ['v1', 'v1alpha'] as const

interface Answer {
  readonly listServicesResponse?: { readonly service: readonly { readonly name: string }[] }
  readonly fileDescriptorResponse?: { readonly fileDescriptorProto: readonly Buffer[] }
  readonly errorResponse?: { readonly errorCode: number }
}

/** A server with reflection and a client that has its messages from the package, not from us. */
async function start(version: (typeof versions)[number]) {
  const server = new Server()
  server.addService(ChangeServiceService, { head: unserved, watch: unserved })
  const { signal: stopping } = new AbortController()
  const serviceHost = openServiceHost({ server, log: pino({ enabled: false }), stopping })
  serviceHost.names.add('overlay.change.v1.ChangeService')
  reflection(serviceHost)
  const port = await new Promise<number>((resolve, reject) =>
    server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (err, bound) =>
      err ? reject(err) : resolve(bound),
    ),
  )
  onTestFinished(() => server.forceShutdown())
  const client = new Client(`127.0.0.1:${port}`, credentials.createInsecure())
  onTestFinished(() => client.close())
  const definitions = loadSync(`grpc/reflection/${version}/reflection.proto`, options)
  const service = definitions[`grpc.reflection.${version}.ServerReflection`] as ServiceDefinition
  const method = service.ServerReflectionInfo as MethodDefinition<object, Answer>
  const { path, requestSerialize, responseDeserialize } = method
  return {
    method,
    ask: (...requests: object[]) =>
      new Promise<Answer[]>((resolve, reject) => {
        const answers: Answer[] = []
        const stream = client.makeBidiStreamRequest(path, requestSerialize, responseDeserialize)
        stream.on('data', (answer: Answer) => answers.push(answer))
        stream.on('error', reject).on('end', () => resolve(answers))
        for (const request of requests) stream.write(request)
        stream.end()
      }),
    sendBytes: (bytes: Buffer) =>
      new Promise<number>((resolve) => {
        const stream = client.makeBidiStreamRequest(
          path,
          (b: Buffer) => b,
          (b: Buffer) => b,
        )
        stream.on('data', () => undefined)
        stream.on('error', (err: Error & { code: number }) => resolve(err.code))
        stream.write(bytes)
      }),
  }
}

const unserved = (): never => {
  throw new Error('not called')
}

test.each(versions)('%s lists the services of the server, and no other', async (version) => {
  const { ask } = await start(version)
  const [answer] = await ask({ listServices: '*' })
  expect(answer?.listServicesResponse?.service.map(({ name }) => name).sort()).toEqual([
    'grpc.health.v1.Health',
    'grpc.reflection.v1.ServerReflection',
    'grpc.reflection.v1alpha.ServerReflection',
    'overlay.change.v1.ChangeService',
  ])
})

test.each(versions)(
  '%s describes a symbol with the files that it needs, in the order of requests',
  async (version) => {
    const { ask } = await start(version)
    const answers = await ask(
      { fileContainingSymbol: 'overlay.policy.v1.PolicyService.Authorize' },
      { fileContainingSymbol: 'overlay.nothing' },
      { fileByFilename: 'health/v1/health.proto' },
      { fileContainingExtension: { containingType: 'overlay.nothing', extensionNumber: 5 } },
    )
    const [symbol, unknown, file, extension] = answers
    const texts = symbol?.fileDescriptorResponse?.fileDescriptorProto.map((bytes) => bytes.toString('latin1'))
    for (const name of ['policy', 'entity', 'change'])
      expect(texts).toContainEqual(expect.stringContaining(`overlay/${name}/v1/${name}.proto`))
    expect(unknown?.errorResponse?.errorCode).toBe(status.NOT_FOUND)
    expect(file?.fileDescriptorResponse?.fileDescriptorProto).toHaveLength(1)
    expect(extension?.errorResponse?.errorCode).toBe(status.NOT_FOUND)
  },
)

test('a malformed request gets a status', async () => {
  const { sendBytes } = await start('v1')
  expect(await sendBytes(Buffer.from([0x0a, 0xff]))).toBe(status.INVALID_ARGUMENT)
})

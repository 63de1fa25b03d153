import { BinaryReader, BinaryWriter } from '@bufbuild/protobuf/wire'
import type { MethodDefinition } from '@grpc/grpc-js'
import { loadFileDescriptorSetFromBuffer } from '@grpc/proto-loader'
import { ReflectionV1Implementation } from '@grpc/reflection/build/src/implementations/reflection-v1.js'
import { asBuffer } from './as-buffer.js'
import { DESCRIPTORS } from './gen/descriptors.js'

type Implementation = InstanceType<typeof ReflectionV1Implementation>
type Request = Parameters<Implementation['handleServerReflectionRequest']>[0]

/**
 * Answers encoded requests of server reflection about these services. The package loads its own messages from a file
 * beside it, which a bundle does not have; here they come from the embedded descriptors.
 */
export function reflectionAnswers(services: readonly string[]): (request: Buffer) => Buffer {
  const files = filesIn(Buffer.from(DESCRIPTORS, 'base64'))
  const implementation = new ReflectionV1Implementation(
    { files: { format: 'Protocol Buffer 3 DescriptorProto', type: {}, fileDescriptorProtos: files } },
    { services: [...services] },
  )
  const { requestDeserialize, responseSerialize } = reflectionMethod(files)
  return (request) => {
    const asked = rename(requestDeserialize(request), camelCase) as Request
    return responseSerialize(rename(implementation.handleServerReflectionRequest(asked), snakeCase) as object)
  }
}

function reflectionMethod(files: readonly Buffer[]): MethodDefinition<object, object> {
  const [file] = files.filter((bytes) => bytes.includes('grpc.reflection.v1.'))
  if (!file) throw new Error('the descriptors lack server reflection')
  const set = asBuffer(new BinaryWriter().uint32(FILE_TAG).bytes(file).finish())
  const options = { longs: String, enums: String, bytes: Array, defaults: true, oneofs: true } as const
  const definition = loadFileDescriptorSetFromBuffer(set, options)['grpc.reflection.v1.ServerReflection']
  return (definition as unknown as { ServerReflectionInfo: MethodDefinition<object, object> })
    .ServerReflectionInfo
}

const FILE_TAG = (1 << 3) | 2 // the only field of a FileDescriptorSet

function filesIn(set: Buffer): Buffer[] {
  const files: Buffer[] = []
  for (const reader = new BinaryReader(set); reader.pos < reader.len; ) {
    reader.tag()
    files.push(Buffer.from(reader.bytes()))
  }
  return files
}

/** The implementation has names in camel case, descriptors in snake case. A oneof's value is the name of a field. */
function rename(value: unknown, to: (name: string) => string): unknown {
  if (Array.isArray(value)) return value.map((one) => rename(one, to))
  if (typeof value !== 'object' || value === null || value instanceof Uint8Array) return value
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => [
      to(name),
      name === 'message_request' ? to(String(member)) : rename(member, to),
    ]),
  )
}

const camelCase = (name: string): string => name.replace(/_(.)/g, (_, letter: string) => letter.toUpperCase())
const snakeCase = (name: string): string => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)

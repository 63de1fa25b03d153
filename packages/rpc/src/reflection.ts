import { type handleBidiStreamingCall, status } from '@grpc/grpc-js'
import type { HostedService } from './host.js'

/** Both versions have the same messages. */
const services = ['v1', 'v1alpha'].map((version) => `grpc.reflection.${version}.ServerReflection`)
const pathOf = (service: string): string => `/${service}/ServerReflectionInfo`

export const reflectionPaths: readonly string[] = services.map(pathOf)

/** Describes the services that were added before it. The implementation takes 20 MB, so it is loaded at the first call. */
export const reflection: HostedService = ({ server, names, log }) => {
  const described = [...names, 'grpc.health.v1.Health', ...services]
  let loading: Promise<(request: Buffer) => Buffer> | undefined
  const load = () => {
    loading ??= import('./reflection-answers.js').then(({ reflectionAnswers }) =>
      reflectionAnswers(described),
    )
    return loading
  }
  const handler: handleBidiStreamingCall<Buffer, Buffer> = (stream) => {
    const fail = (err: unknown): void => {
      log.warn({ err }, 'reflection failed')
      stream.emit('error', { code: status.INVALID_ARGUMENT, details: 'not answered' }) // destroy() never reaches the client
    }
    stream.on('data', (request: Buffer) => {
      load()
        .then((answer) => stream.write(answer(request)))
        .catch(fail)
    })
    stream.on('end', () => void load().then(() => stream.end(), fail))
    stream.on('error', () => undefined) // the client has gone, or has its status
  }
  for (const name of services) {
    const raw = (bytes: Buffer): Buffer => bytes
    const method = {
      path: pathOf(name),
      requestStream: true,
      responseStream: true,
      requestSerialize: raw,
      requestDeserialize: raw,
      responseSerialize: raw,
      responseDeserialize: raw,
    }
    server.addService({ serverReflectionInfo: method }, { serverReflectionInfo: handler })
  }
}

import type { Client, Metadata, ServiceError } from '@grpc/grpc-js'
import { type Context, toMetadata } from './context.js'
import { endingOf } from './ending.js'
import { type Fault, isServiceError, toFault } from './fault.js'
import { type Keepalive, unresponsive } from './keepalive.js'
import { onAbort } from './limits.js'
import { abortedBy } from './mux-client.js'

/** The calls to one replica that are calls of gRPC. */
export interface GrpcCalls {
  /** @param limitMs of a call that has no deadline */
  unary(path: string, request: Buffer, context: Context, limitMs: number): Promise<Buffer>
  stream(path: string, request: Buffer, context: Context): AsyncGenerator<Buffer>
}

export interface GrpcCallsOptions {
  readonly client: Client
  readonly keepalive: Keepalive
  sign(metadata: Metadata): Metadata
  onLeft(end: () => void): () => void
}

export const grpcCalls = ({ client, keepalive, sign, onLeft }: GrpcCallsOptions): GrpcCalls => ({
  unary: (path, request, context, limitMs) =>
    new Promise((resolve, reject) => {
      let fault: Fault | undefined
      const call = client.makeUnaryRequest<Buffer, Buffer>(
        path,
        asBytes,
        asBytes,
        request,
        sign(toMetadata(context)),
        deadlineOf(context, limitMs),
        (err: ServiceError | null, response) => {
          for (const remove of listeners) remove()
          if (!err) keepalive.received()
          if (err) reject(fault ?? toFault(err))
          else resolve(response ?? Buffer.alloc(0))
        },
      )
      const end = (reason: Fault): void => {
        fault ??= reason
        call.cancel()
      }
      const ending = endingOf(context)
      const listeners = [
        ending.listen(() => end(abortedBy(ending))),
        keepalive.onUnresponsive(() => end(unresponsive())),
      ]
    }),

  async *stream(path, request, context) {
    const { signal } = context
    const call = client.makeServerStreamRequest(
      path,
      asBytes,
      asBytes,
      request,
      sign(toMetadata(context)),
      deadlineOf(context, Number.POSITIVE_INFINITY),
    )
    const cancel = (): void => call.cancel()
    const listeners = [onAbort(signal, cancel), keepalive.onUnresponsive(cancel), onLeft(cancel)]
    try {
      for await (const message of call) {
        keepalive.received()
        yield message
      }
    } catch (err) {
      if (!signal.aborted) throw isServiceError(err) ? toFault(err) : err
    } finally {
      for (const remove of listeners) remove()
      call.cancel()
    }
  },
})

const asBytes = (bytes: Buffer): Buffer => bytes

const deadlineOf = ({ deadline }: Context, limitMs: number): { deadline?: Date } => {
  if (deadline) return { deadline }
  return Number.isFinite(limitMs) ? { deadline: new Date(Date.now() + limitMs) } : {}
}

import type { Client } from '@grpc/grpc-js'
import type { Context } from './context.js'
import { toMetadata } from './context-codec.js'
import { isServiceError, toFault } from './fault.js'
import type { Keepalive } from './keepalive.js'
import { onAbort } from './on-abort.js'

/** Streams of encoded messages from one replica, over gRPC. They end without a fault when the signal of the context aborts. */
export type OpenStream = (path: string, request: Buffer, context: Context) => AsyncGenerator<Buffer>

export interface StreamOptions {
  readonly client: Client
  readonly keepalive: Keepalive
  /** Whether any replica of the service was ever connected. */
  wasConnected(): boolean
  /** Calls `end` when the replica gets no more calls. Returns a function that removes `end`. */
  onLeft(end: () => void): () => void
}

export const openStreams = ({ client, keepalive, wasConnected, onLeft }: StreamOptions): OpenStream =>
  async function* (path, request, context) {
    const { signal, deadline } = context
    const metadata = toMetadata(context)
    // streams wait for the first start of their service; later, an unavailable service fails them at once
    metadata.setOptions({ waitForReady: !wasConnected() })
    const options = deadline ? { deadline } : {}
    const call = client.makeServerStreamRequest(path, pass, pass, request, metadata, options)
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
  }

const pass = (bytes: Buffer): Buffer => bytes

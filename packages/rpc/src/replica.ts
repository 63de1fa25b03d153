import { Client, connectivityState, Metadata, type MethodDefinition } from '@grpc/grpc-js'
import type { Context } from './context.js'
import { dial, Unreachable } from './dial.js'
import { Fault, isServiceError, toFault } from './fault.js'
import { FRAMES, framesWire } from './frames.js'
import { CallServiceService } from './gen/overlay/stream/v1/stream.js'
import { grpcCalls } from './grpc-calls.js'
import { type Keepalive, startKeepalive, unresponsive, type Waiting } from './keepalive.js'
import { MESSAGE_LIMIT_BYTES } from './limits.js'
import { type MuxClient, type OpenWire, openMuxClient } from './mux-client.js'
import type { PeerConnection } from './peer-connection.js'
import { streamWire, type Wire, type WireEvents } from './wire.js'

export type CalledMethod = Pick<MethodDefinition<unknown, unknown>, 'path' | 'requestSerialize'>

/** One replica of a service, for its callers. */
export interface CalledReplica {
  /** `host:port` or `unix:/path` */
  readonly address: string
  /** @param limitMs of a call that has no deadline */
  call(method: CalledMethod, request: unknown, context: Context, limitMs: number): Promise<Buffer>
  /** The same over a connection for large answers, which would delay the others. */
  callBulk(method: CalledMethod, request: unknown, context: Context, limitMs: number): Promise<Buffer>
  /** Encoded messages. Ends without a fault when the signal of the context aborts. */
  stream(path: string, request: Buffer, context: Context): AsyncGenerator<Buffer>
}

/** A replica in another process. */
export interface Replica extends CalledReplica {
  readonly mux: MuxClient
  /** Its calls fail with `NoFrames` at a replica that has none. */
  readonly bulk: MuxClient
  readonly keepalive: Keepalive
  isConnected(): boolean
  /** Whether it is connected, or has not been tried yet. */
  isPromising(): boolean
  /** Whether calls, streams or a ping wait for it. */
  isAwaited(): boolean
  /** Asks for an answer if one is missing. Closes the connections of a host that has vanished. */
  beat(): void
  /** Ends all that waits for it. */
  endAll(): void
  /** Ends its streams, which others can serve, and closes it after its last pending call. It gets no more calls. */
  leave(): Promise<void>
  close(): void
}

/** A replica of an older release speaks HTTP/2 only. */
export class NoFrames extends Error {
  override readonly name = 'NoFrames'
}

export interface ReplicaOptions {
  /** `host:port` or `unix:/path` */
  readonly address: string
  readonly connection: PeerConnection
  /** Whether the service has no other one. Its streams then last until gRPC finds that its host has vanished. */
  isAlone(): boolean
  /** Whether any replica of the service was ever connected. */
  wasConnected(): boolean
  onConnected(): void
  /** Its connection is lost, or cannot be made. */
  onLost(): void
  sign(metadata: Metadata): Metadata
}

/** How long separate calls of gRPC are made before frames are offered again. */
const MINUTE_MS = 60_000
/** How long a replica that takes no connection counts as disconnected, even if it has another connection. */
const REFUSED_MS = 1000

export function openReplica({
  address,
  connection,
  isAlone,
  wasConnected,
  onConnected,
  onLost,
  sign,
}: ReplicaOptions): Replica {
  const client = new Client(address, connection.credentials, {
    ...clientOptions,
    'grpc.ssl_target_name_override': connection.service,
  })
  const keepalive = startKeepalive()
  const firstReady = new Promise<void>((resolve, reject) => {
    client.waitForReady(Number.POSITIVE_INFINITY, (closed) => {
      if (closed) return reject(new Unreachable(`${address} was never connected`, { cause: closed }))
      onConnected()
      resolve()
    })
  })
  firstReady.catch(() => undefined) // closed before

  // the channel of gRPC knows whether the replica can be reached
  const state = (): connectivityState => client.getChannel().getConnectivityState(true)
  const watchState = (before: connectivityState): void =>
    client.getChannel().watchConnectivityState(before, Number.POSITIVE_INFINITY, () => {
      const now = client.getChannel().getConnectivityState(false)
      if (now === connectivityState.SHUTDOWN) return
      if (before === connectivityState.READY || now === connectivityState.TRANSIENT_FAILURE) onLost()
      watchState(now)
    })
  watchState(state())
  let refusedMs = Number.NEGATIVE_INFINITY
  let framesAgainMs = 0
  const openFrames: OpenWire = async (events) => {
    if (!wasConnected()) await firstReady
    if (state() === connectivityState.TRANSIENT_FAILURE) throw new Unreachable(`${address} cannot be reached`)
    if (performance.now() < framesAgainMs) throw new NoFrames()
    const socket = await dial(address, connection.options()).catch((err: unknown) => {
      refusedMs = performance.now()
      onLost()
      throw err
    })
    if (socket.alpnProtocol === FRAMES) return framesWire(socket, events)
    socket.resume().end() // the server would count a broken handshake
    framesAgainMs = performance.now() + MINUTE_MS
    throw new NoFrames()
  }
  const openAny: OpenWire = async (events) => {
    try {
      return await openFrames(events)
    } catch (err) {
      if (err instanceof NoFrames) return openStream(client, events, sign(new Metadata()))
      throw err
    }
  }
  // one of the connections may be lost without a word while the other works
  const watched = (open: OpenWire) => {
    const own = startKeepalive()
    const received = (): void => {
      keepalive.received()
      own.received()
    }
    return { own, client: openMuxClient(open, received) }
  }
  const lines = [watched(openAny), watched(openFrames)] as const
  const both = lines.map(({ client }) => client)
  const [{ client: mux }, { client: bulk }] = lines
  const isConnected = (): boolean =>
    both.some(({ isOpen }) => isOpen()) ||
    (state() === connectivityState.READY && performance.now() - refusedMs > REFUSED_MS)
  const reset = (): void => {
    for (const client of both) client.reset()
  }
  function waiting(): Waiting {
    if (both.some(({ pending }) => pending() > 0)) return 'calls'
    return keepalive.hasStreams() && !isAlone() ? 'streams' : 'nothing'
  }
  const close = (): void => {
    reset()
    client.close()
  }
  const leaving = new Set<() => void>()
  function onLeft(end: () => void): () => void {
    const entry = (): void => end() // the same function may be registered twice
    leaving.add(entry)
    return () => leaving.delete(entry)
  }
  const { unary, stream } = grpcCalls({ client, keepalive, sign, onLeft })
  return {
    address,
    call: async ({ path, requestSerialize }, request, context, limitMs) =>
      mux.call(path, requestSerialize(request), context, limitMs),
    async callBulk({ path, requestSerialize }, request, context, limitMs) {
      const bytes = requestSerialize(request)
      try {
        return await bulk.call(path, bytes, context, limitMs)
      } catch (err) {
        if (err instanceof Fault && err.cause instanceof NoFrames) return unary(path, bytes, context, limitMs)
        throw err
      }
    },
    stream,
    mux,
    bulk,
    keepalive,
    isConnected,
    isPromising: () =>
      isConnected() ||
      (refusedMs === Number.NEGATIVE_INFINITY && state() !== connectivityState.TRANSIENT_FAILURE),
    isAwaited: () => waiting() !== 'nothing' || keepalive.isAsked() || lines.some(({ own }) => own.isAsked()),
    beat() {
      for (const { own, client } of lines) {
        if (!client.isOpen()) own.reset()
        const need = own.beat(client.pending() > 0 ? 'calls' : 'nothing')
        if (need === 'ping') client.ping()
        if (need === 'reset') client.reset()
      }
      if (!isConnected()) return keepalive.reset()
      const need = keepalive.beat(waiting())
      if (need === 'reset') reset()
      if (need === 'ping' && mux.pending() === 0) mux.ping()
    },
    endAll() {
      for (const client of both) client.fail(unresponsive())
      keepalive.endAll()
    },
    async leave() {
      for (const end of [...leaving]) end()
      await Promise.all(both.map((client) => client.end()))
      // a call for which the replica had no frames continues over gRPC, and closing lets calls of gRPC end
      await new Promise((resolve) => setImmediate(resolve))
      close()
    },
    close,
  }
}

async function openStream(client: Client, events: WireEvents, metadata: Metadata): Promise<Wire> {
  const { path } = CallServiceService.calls
  const stream = client.makeBidiStreamRequest<Buffer, Buffer>(path, asBytes, asBytes, metadata)
  const closed = (err?: unknown): void => events.closed(isServiceError(err) ? toFault(err) : err)
  return streamWire(stream, { ...events, closed }, () => stream.cancel())
}

const asBytes = (bytes: Buffer): Buffer => bytes

const clientOptions = {
  // every address behind a name gets its own connection, and lost ones are reopened
  'grpc.service_config': JSON.stringify({ loadBalancingConfig: [{ round_robin: {} }] }),
  'grpc.initial_reconnect_backoff_ms': 100,
  'grpc.max_reconnect_backoff_ms': 2000,
  'grpc.keepalive_time_ms': 10_000, // detects a host that vanished
  'grpc.keepalive_timeout_ms': 3000,
  'grpc.max_receive_message_length': MESSAGE_LIMIT_BYTES,
  'grpc.max_send_message_length': MESSAGE_LIMIT_BYTES,
  'grpc-node.flow_control_window': 1024 * 1024,
  'grpc.enable_channelz': 0,
}

import { Client, connectivityState, type MethodDefinition } from '@grpc/grpc-js'
import type { Context } from './context.js'
import { dial, Unreachable } from './dial.js'
import { carryFrames } from './frame-connection.js'
import { type Keepalive, startKeepalive, unresponsive, type Waiting } from './keepalive.js'
import {
  GRPC_BACKOFF_MS,
  GRPC_KEEPALIVE_MS,
  GRPC_WINDOW_BYTES,
  MESSAGE_LIMIT_BYTES,
  REFUSED_MS,
} from './limits.js'
import { type OpenConnection, openMuxClient } from './mux-client.js'
import { type OpenStream, openStreams } from './open-streams.js'
import type { PeerConnection } from './peer-connection.js'

export type CalledMethod = Pick<MethodDefinition<unknown, unknown>, 'path' | 'requestSerialize'>

/** One replica of a service, for its callers. */
export interface CalledReplica {
  /** `host:port` or `unix:/path` */
  readonly address: string
  /** @param limitMs of a call that has no deadline */
  call(method: CalledMethod, request: unknown, context: Context, limitMs: number): Promise<Buffer>
  readonly stream: OpenStream
}

/** A replica in another process. */
export interface Replica extends CalledReplica {
  readonly keepalive: Keepalive
  /** How many calls wait for it. */
  pending(): number
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
}

/** Calls are carried by a connection of frames, and streams by one of gRPC. */
export function openReplica({
  address,
  connection,
  isAlone,
  wasConnected,
  onConnected,
  onLost,
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
  const open: OpenConnection = async (events) => {
    if (!wasConnected()) await firstReady
    if (state() === connectivityState.TRANSIENT_FAILURE) throw new Unreachable(`${address} cannot be reached`)
    const socket = await dial(address, connection.options()).catch((err: unknown) => {
      refusedMs = performance.now()
      onLost()
      throw err
    })
    return carryFrames(socket, events)
  }
  // the connection may be lost without a word while that of the streams works
  const ofCalls = startKeepalive()
  const mux = openMuxClient(open, () => {
    keepalive.received()
    ofCalls.received()
  })
  const isConnected = (): boolean =>
    mux.isOpen() || (state() === connectivityState.READY && performance.now() - refusedMs > REFUSED_MS)
  function waiting(): Waiting {
    if (mux.pending() > 0) return 'calls'
    return keepalive.hasStreams() && !isAlone() ? 'streams' : 'nothing'
  }
  const close = (): void => {
    mux.reset()
    client.close()
  }
  const leaving = new Set<() => void>()
  function onLeft(end: () => void): () => void {
    const entry = (): void => end() // the same function may be registered twice
    leaving.add(entry)
    return () => leaving.delete(entry)
  }
  return {
    address,
    async call({ path, requestSerialize }, request, context, limitMs) {
      return mux.call(path, requestSerialize(request), context, limitMs)
    },
    stream: openStreams({ client, keepalive, wasConnected, onLeft }),
    keepalive,
    pending: mux.pending,
    isConnected,
    isPromising: () =>
      isConnected() ||
      (refusedMs === Number.NEGATIVE_INFINITY && state() !== connectivityState.TRANSIENT_FAILURE),
    isAwaited: () => waiting() !== 'nothing' || keepalive.isAsked() || ofCalls.isAsked(),
    beat() {
      if (!mux.isOpen()) ofCalls.reset()
      const need = ofCalls.beat(mux.pending() > 0 ? 'calls' : 'nothing')
      if (need === 'ping') mux.ping()
      if (need === 'reset') mux.reset()
      if (!isConnected()) return keepalive.reset()
      const needOfAll = keepalive.beat(waiting())
      if (needOfAll === 'reset') mux.reset()
      if (needOfAll === 'ping' && mux.pending() === 0) mux.ping()
    },
    endAll() {
      mux.fail(unresponsive())
      keepalive.endAll()
    },
    async leave() {
      for (const end of [...leaving]) end()
      await mux.end()
      close()
    },
    close,
  }
}

const clientOptions = {
  // every address behind a name gets its own connection, and lost ones are reopened
  'grpc.service_config': JSON.stringify({ loadBalancingConfig: [{ round_robin: {} }] }),
  'grpc.initial_reconnect_backoff_ms': GRPC_BACKOFF_MS.initial,
  'grpc.max_reconnect_backoff_ms': GRPC_BACKOFF_MS.most,
  'grpc.keepalive_time_ms': GRPC_KEEPALIVE_MS.after,
  'grpc.keepalive_timeout_ms': GRPC_KEEPALIVE_MS.answer,
  'grpc.max_receive_message_length': MESSAGE_LIMIT_BYTES,
  'grpc.max_send_message_length': MESSAGE_LIMIT_BYTES,
  'grpc-node.flow_control_window': GRPC_WINDOW_BYTES,
  'grpc.enable_channelz': 0,
}

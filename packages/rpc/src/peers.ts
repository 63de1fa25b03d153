import { Client, connectivityState, credentials, Metadata } from '@grpc/grpc-js'
import { MESSAGE_LIMIT_BYTES } from './limits.js'
import { type Line, openLine } from './line.js'
import { SECRET_KEY } from './serve.js'

/** One replica of a service. */
export interface Replica {
  readonly client: Client
  readonly line: Line
}

/** All replicas of one service, as their clients see them. */
export interface Peers extends AsyncDisposable {
  /** For the next call: replicas that answer come first, each in its turn. */
  next(): Replica
  /** For the next tagged call: of these the one with the fewest pending. */
  idlest(): Replica
  /** False until one of them was there for the first time: so long calls wait for it. */
  reached(): boolean
  sign(metadata: Metadata): Metadata
}

/** Connects to the replicas at `addresses`, separated by commas, and stays connected. */
export function connectPeers(addresses: string, { secret }: { readonly secret: string }): Peers {
  let reached = false
  let turn = 0

  const sign = (metadata: Metadata): Metadata => {
    metadata.set(SECRET_KEY, secret)
    // a call that comes before the first start of its service waits; later a service that is away says so at once
    metadata.setOptions({ waitForReady: !reached })
    return metadata
  }
  const replicas = addresses.split(',').map((address): Replica => {
    const client = new Client(address.trim(), credentials.createInsecure(), options)
    client.waitForReady(Number.POSITIVE_INFINITY, (closed) => {
      if (!closed) reached = true
    })
    return { client, line: openLine(client, () => sign(new Metadata())) }
  })
  const answering = (): readonly Replica[] => {
    if (replicas.length === 1) return replicas
    const ready = replicas.filter(
      ({ client }) => client.getChannel().getConnectivityState(true) === connectivityState.READY,
    )
    return ready.length > 0 ? ready : replicas
  }
  const next = (): Replica => {
    const found = answering()
    turn = (turn + 1) % found.length
    return found[turn] ?? nobody()
  }
  return {
    next,
    idlest: () =>
      answering().reduce(
        (best, replica) => (replica.line.pending() < best.line.pending() ? replica : best),
        next(),
      ),
    reached: () => reached,
    sign,
    async [Symbol.asyncDispose]() {
      for (const { client, line } of replicas) {
        line.close()
        client.close()
      }
    },
  }
}

function nobody(): never {
  throw new Error('a service without addresses')
}

const options = {
  // replicas that share a name get connections of their own, and lost ones are made anew
  'grpc.service_config': JSON.stringify({ loadBalancingConfig: [{ round_robin: {} }] }),
  'grpc.initial_reconnect_backoff_ms': 100,
  'grpc.max_reconnect_backoff_ms': 2000,
  'grpc.keepalive_time_ms': 10_000, // a host that vanished is noticed
  'grpc.keepalive_timeout_ms': 3000,
  'grpc.max_receive_message_length': MESSAGE_LIMIT_BYTES,
  'grpc.max_send_message_length': MESSAGE_LIMIT_BYTES,
  'grpc-node.flow_control_window': 1024 * 1024,
  'grpc.enable_channelz': 0,
}

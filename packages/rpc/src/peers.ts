import { Client, connectivityState, credentials, Metadata } from '@grpc/grpc-js'
import { Fault } from './fault.js'
import { BEAT_MS, type Keepalive, SilentReplica, startKeepalive } from './keepalive.js'
import { MESSAGE_LIMIT_BYTES } from './limits.js'
import { type MuxClient, openMuxClient } from './mux-client.js'
import { SECRET_KEY } from './serve.js'

/** One replica of a service. */
export interface Replica {
  readonly client: Client
  readonly line: MuxClient
  readonly pulse: Keepalive
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

export interface PeersOptions {
  readonly secret: string
  /** Calls `beat` again and again until the answer is called. */
  readonly beats?: (beat: () => void) => () => void
}

/**
 * Connects to the replicas at `addresses`, separated by commas, and stays connected. Where there are several, one that
 * is silent gets no new calls until it answers again, and its pending ones end.
 */
export function connectPeers(addresses: string, { secret, beats = everyHalfSecond }: PeersOptions): Peers {
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
    const pulse = startKeepalive()
    const line = openMuxClient(client, () => sign(new Metadata()), pulse.heard)
    pulse.whenSilent(() => line.fail(silent()))
    return { client, line, pulse }
  })
  const isReady = ({ client }: Replica): boolean =>
    client.getChannel().getConnectivityState(true) === connectivityState.READY
  const answering = (): readonly Replica[] => {
    if (replicas.length === 1) return replicas
    const ready = replicas.filter(isReady)
    const answering = ready.filter(({ pulse }) => pulse.answers())
    return [answering, ready, replicas].find(({ length }) => length > 0) ?? nobody()
  }
  function beat(): void {
    for (const replica of replicas) {
      const { line, pulse } = replica
      if (!isReady(replica)) {
        pulse.reset()
        continue
      }
      pulse.beat()
      line.ping()
    }
    const ready = replicas.filter(isReady)
    if (!ready.some(({ pulse }) => pulse.answers())) return // nobody else could be asked
    for (const { pulse } of ready) if (!pulse.answers()) pulse.endAll()
  }
  const stop = replicas.length > 1 ? beats(beat) : () => undefined
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
      stop()
      for (const { client, line } of replicas) {
        line.close()
        client.close()
      }
    },
  }
}

/** What ends the calls of a silent replica. */
export const silent = (): Fault => new Fault('UNAVAILABLE', undefined, new SilentReplica())

function everyHalfSecond(beat: () => void): () => void {
  const timer = setInterval(beat, BEAT_MS)
  timer.unref() // the calls themselves keep the process alive
  return () => clearInterval(timer)
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

import { createSecureContext, type SecureContext } from 'node:tls'
import { Client, connectivityState, credentials, Metadata, type VerifyOptions } from '@grpc/grpc-js'
import { Fault } from './fault.js'
import { BEAT_MS, type Keepalive, startKeepalive, UnresponsiveReplica } from './keepalive.js'
import { MESSAGE_LIMIT_BYTES } from './limits.js'
import { type MuxClient, openMuxClient } from './mux-client.js'
import { type PeerName, peerNameIn } from './peer-name.js'
import type { PeerTls } from './peer-tls.js'

/** One replica of a service. */
export interface Replica {
  readonly client: Client
  readonly mux: MuxClient
  readonly keepalive: Keepalive
}

/** All replicas of one service, as their clients see them. */
export interface Peers extends AsyncDisposable {
  /** The replica for the next call: responsive ones first, in turn. */
  next(): Replica
  /** The replica for the next multiplexed call: of the same ones, the one with the fewest pending calls. */
  leastBusy(): Replica
  /** Whether a connection was ever established. Until then calls wait for it. */
  wasConnected(): boolean
  sign(metadata: Metadata): Metadata
}

export interface PeersOptions {
  readonly tls: PeerTls
  /** The service that the replicas must prove to be. */
  readonly service: PeerName
  /** Calls `beat` at intervals. Returns a function that stops it. */
  readonly startBeats?: (beat: () => void) => () => void
}

/**
 * Connects to the replicas at `addresses`, separated by commas, and reconnects. Where there are several, an unresponsive
 * replica gets no new calls until it responds again, and its pending calls end.
 */
export function connectPeers(
  addresses: string,
  { tls, service, startBeats = everyHalfSecond }: PeersOptions,
): Peers {
  let wasConnected = false
  let turn = 0

  const sign = (metadata: Metadata): Metadata => {
    // calls wait for the first start of their service; later a service that is away fails them at once
    metadata.setOptions({ waitForReady: !wasConnected })
    return metadata
  }
  const channel = channelCredentials(service, tls)
  const options = { ...clientOptions, 'grpc.ssl_target_name_override': service }
  const replicas = addresses.split(',').map((address): Replica => {
    const client = new Client(address.trim(), channel.credentials, options)
    client.waitForReady(Number.POSITIVE_INFINITY, (closed) => {
      if (!closed) wasConnected = true
    })
    const keepalive = startKeepalive()
    const mux = openMuxClient(client, () => sign(new Metadata()), keepalive.received)
    keepalive.onUnresponsive(() => mux.fail(unresponsive()))
    return { client, mux, keepalive }
  })
  const isReady = ({ client }: Replica): boolean =>
    client.getChannel().getConnectivityState(true) === connectivityState.READY
  const isResponsive = ({ keepalive }: Replica): boolean => keepalive.isResponsive()
  const candidates = (): readonly Replica[] => {
    if (replicas.length === 1) return replicas
    const ready = replicas.filter(isReady)
    const responsive = ready.filter(isResponsive)
    return [responsive, ready].find(({ length }) => length > 0) ?? replicas
  }
  function beat(): void {
    for (const replica of replicas) {
      const { mux, keepalive } = replica
      if (!isReady(replica)) {
        keepalive.reset()
        continue
      }
      keepalive.beat()
      mux.ping()
    }
    const ready = replicas.filter(isReady)
    if (!ready.some(isResponsive)) return // there is no other replica to call
    for (const { keepalive } of ready) if (!keepalive.isResponsive()) keepalive.endAll()
  }
  const stopBeats = replicas.length > 1 ? startBeats(beat) : () => undefined
  const next = (): Replica => {
    const list = candidates()
    turn = (turn + 1) % list.length
    const replica = list[turn]
    if (!replica) throw new Error('a service without addresses')
    return replica
  }
  return {
    next,
    leastBusy: () =>
      candidates().reduce(
        (best, replica) => (replica.mux.pending() < best.mux.pending() ? replica : best),
        next(),
      ),
    wasConnected: () => wasConnected,
    sign,
    async [Symbol.asyncDispose]() {
      stopBeats()
      channel.stopRenewing()
      for (const { client, mux } of replicas) {
        mux.close()
        client.close()
      }
    },
  }
}

/** Each new connection uses the current certificate and authorities. */
function channelCredentials(service: PeerName, tls: PeerTls) {
  let { context } = createSecureContext(tls.contextOptions())
  const stopRenewing = tls.onChange(() => {
    context = createSecureContext(tls.contextOptions()).context
  })
  const current: SecureContext = {
    get context() {
      return context
    },
  }
  const verify: VerifyOptions = {
    checkServerIdentity(_host, { subjectaltname }) {
      if (peerNameIn(subjectaltname) === service) return undefined
      return new Error(`the server has the certificate of ${subjectaltname}, not of ${service}`)
    },
  }
  return { credentials: credentials.createFromSecureContext(current, verify), stopRenewing }
}

/** The fault that ends the calls of an unresponsive replica. */
export const unresponsive = (): Fault => new Fault('UNAVAILABLE', undefined, new UnresponsiveReplica())

function everyHalfSecond(beat: () => void): () => void {
  const timer = setInterval(beat, BEAT_MS)
  timer.unref() // the calls themselves keep the process alive
  return () => clearInterval(timer)
}

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

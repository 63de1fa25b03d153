import type { Metadata } from '@grpc/grpc-js'
import { BEAT_MS } from './keepalive.js'
import { peerConnection } from './peer-connection.js'
import type { PeerName } from './peer-name.js'
import type { PeerTls } from './peer-tls.js'
import { openReplica, type Replica } from './replica.js'

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
  { tls, service, startBeats = everyBeat }: PeersOptions,
): Peers {
  let wasConnected = false
  let turn = 0

  const sign = (metadata: Metadata): Metadata => {
    // calls wait for the first start of their service; later a service that is away fails them at once
    metadata.setOptions({ waitForReady: !wasConnected })
    return metadata
  }
  const connection = peerConnection(service, tls)
  const list = addresses.split(',')
  const replicas = list.map((address) =>
    openReplica({
      address: address.trim(),
      connection,
      isAlone: list.length === 1,
      wasConnected: () => wasConnected,
      onConnected() {
        wasConnected = true
      },
      sign,
    }),
  )
  const isResponsive = ({ keepalive }: Replica): boolean => keepalive.isResponsive()
  const candidates = (): readonly Replica[] => {
    if (replicas.length === 1) return replicas
    const connected = replicas.filter((replica) => replica.isConnected())
    const responsive = connected.filter(isResponsive)
    return [responsive, connected].find(({ length }) => length > 0) ?? replicas
  }
  function beat(): void {
    for (const replica of replicas) replica.beat()
    const connected = replicas.filter((replica) => replica.isConnected())
    // otherwise there is no other replica to call
    if (connected.some(isResponsive))
      for (const replica of connected) if (!isResponsive(replica)) replica.endAll()
    if (replicas.some((replica) => replica.isAwaited())) return
    stopBeats?.()
    stopBeats = undefined
  }
  let stopBeats: (() => void) | undefined
  const next = (): Replica => {
    stopBeats ??= startBeats(beat)
    const among = candidates()
    turn = (turn + 1) % among.length
    const replica = among[turn]
    if (!replica) throw new Error('a service without addresses')
    return replica
  }
  return {
    next,
    leastBusy() {
      const first = next()
      if (replicas.length === 1) return first
      return candidates().reduce(
        (best, replica) => (replica.mux.pending() < best.mux.pending() ? replica : best),
        first,
      )
    },
    wasConnected: () => wasConnected,
    sign,
    async [Symbol.asyncDispose]() {
      stopBeats?.()
      connection[Symbol.dispose]()
      for (const replica of replicas) replica.close()
    },
  }
}

const beats = new Set<() => void>()
let timer: NodeJS.Timeout | undefined // one for all services: each wake-up costs

function everyBeat(beat: () => void): () => void {
  beats.add(beat)
  timer ??= setInterval(() => {
    for (const beat of beats) beat()
  }, BEAT_MS).unref() // the calls themselves keep the process alive
  return () => {
    beats.delete(beat)
    if (beats.size > 0) return
    clearInterval(timer)
    timer = undefined
  }
}

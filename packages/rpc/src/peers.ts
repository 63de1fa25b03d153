import { type LookUp, openAddresses, systemLookUp } from './addresses.js'
import { Fault } from './fault.js'
import { BEAT_MS, LOOK_UP_AGE_MS } from './limits.js'
import { peerConnection } from './peer-connection.js'
import type { PeerName } from './peer-name.js'
import type { PeerTls } from './peer-tls.js'
import { type CalledReplica, openReplica, type Replica } from './replica.js'

/** All replicas of one service, as their clients see them. */
export interface Peers extends AsyncDisposable {
  /** All that are known, connected or not. */
  replicas(): readonly CalledReplica[]
  /** Undefined, or resolves when the first look-up of a name has found a replica. Until then nothing can be called. */
  found(): Promise<void> | undefined
  /** The replica for the next call: of the responsive ones, that with the fewest pending calls; equal ones in turn. */
  next(): CalledReplica
  /** Whether a call that has reached no replica may reach one now. Resolves when names have been looked up again. */
  others(): Promise<boolean>
  /** Whether a connection was ever established. Until then calls wait for it. */
  wasConnected(): boolean
}

export interface PeersOptions {
  readonly tls: PeerTls
  /** The service that the replicas must prove to be. */
  readonly service: PeerName
  /** Calls `beat` at intervals. Returns a function that stops it. */
  readonly startBeats?: (beat: () => void) => () => void
  readonly lookUp?: LookUp
  /** The age at which names are looked up again. */
  readonly lookUpMs?: number
  readonly onLookUpFailed?: (err: unknown) => void
  /** All names were found. */
  readonly onLookedUp?: () => void
}

/**
 * Connects to the replicas at `addresses` (see `openAddresses`), and reconnects. Where there are several, an
 * unresponsive replica gets no new calls until it responds again, and its pending calls end. Names are looked up at
 * intervals, and at once when a replica is lost. A replica whose address is no longer found gets no new calls.
 */
export function connectPeers(
  addresses: string,
  {
    tls,
    service,
    startBeats = everyBeat,
    lookUp = systemLookUp,
    lookUpMs = LOOK_UP_AGE_MS,
    onLookUpFailed = () => undefined,
    onLookedUp = () => undefined,
  }: PeersOptions,
): Peers {
  let isClosed = false
  let wasConnected = false
  let turn = 0
  const found = Promise.withResolvers<void>()
  const connection = peerConnection(service, tls)
  const list = openAddresses(addresses, {
    lookUp,
    changed: update,
    failed: onLookUpFailed,
    succeeded: onLookedUp,
  })
  const current = new Map<string, Replica>()
  const leaving = new Set<Replica>()
  let replicas: readonly Replica[] = []
  function update(): void {
    const listed = new Set(list.current())
    for (const address of listed) if (!current.has(address)) current.set(address, open(address))
    for (const [address, replica] of current) {
      if (listed.has(address)) continue
      current.delete(address)
      void leave(replica)
    }
    replicas = [...current.values()]
    if (replicas.length > 0) found.resolve()
  }
  const open = (address: string): Replica =>
    openReplica({
      address,
      connection,
      isAlone: () => replicas.length === 1,
      wasConnected: () => wasConnected,
      onConnected() {
        wasConnected = true
      },
      onLost: refresh,
    })
  async function leave(replica: Replica): Promise<void> {
    leaving.add(replica)
    await replica.leave()
    leaving.delete(replica)
  }
  function refresh(): void {
    void list.lookUp()
  }

  const isResponsive = ({ keepalive }: Replica): boolean => keepalive.isResponsive()
  const candidates = (): readonly Replica[] => {
    if (replicas.length === 1) return replicas
    const connected = replicas.filter((replica) => replica.isConnected())
    const responsive = connected.filter(isResponsive)
    return [responsive, connected].find(({ length }) => length > 0) ?? replicas
  }
  function beat(): void {
    const all = leaving.size === 0 ? replicas : [...replicas, ...leaving]
    for (const replica of all) replica.beat()
    const connected = all.filter((replica) => replica.isConnected())
    // otherwise there is no other replica to call
    if (connected.some(isResponsive))
      for (const replica of connected) if (!isResponsive(replica)) replica.endAll()
    if (list.hasNames && list.ageMs() > lookUpMs) refresh()
    if (all.some((replica) => replica.isAwaited())) return
    stopBeats?.()
    stopBeats = undefined
  }
  let stopBeats: (() => void) | undefined
  const next = (): Replica => {
    stopBeats ??= startBeats(beat)
    const among = candidates()
    turn = (turn + 1) % among.length
    const first = among[turn]
    if (!first) throw new Fault('UNAVAILABLE', undefined, new Error(`no address of ${service} is known`))
    return among.reduce((best, replica) => (replica.pending() < best.pending() ? replica : best), first)
  }
  update()
  return {
    replicas: () => replicas,
    found: () => (replicas.length === 0 ? found.promise : undefined),
    next,
    async others() {
      await list.lookUp()
      return !isClosed && replicas.some((replica) => replica.isPromising())
    },
    wasConnected: () => wasConnected,
    async [Symbol.asyncDispose]() {
      isClosed = true
      stopBeats?.()
      list[Symbol.dispose]()
      found.resolve()
      connection[Symbol.dispose]()
      for (const replica of [...replicas, ...leaving]) replica.close()
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

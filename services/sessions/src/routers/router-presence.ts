import type { RouterFeatures } from '../domain/router-features.js'

/** A router that is connected to a replica. */
export interface Presence {
  readonly routerId: string
  /** Controller id of the replica. */
  readonly replicaId: string
  readonly connectedAt: Date
  readonly features: RouterFeatures
  /** Protobuf `Listeners` of its hello, as received: where other routers reach it. */
  readonly linkListeners: Buffer
  readonly version: string
  readonly hostname: string
  readonly supportedProtocols: Readonly<Record<string, string>>
  readonly syncStatus: string
}

/** Connected routers of all replicas, in memory. Valid while the lease of the replica lives. */
export interface RouterPresence {
  isOnline(routerId: string): boolean
  /** The connections of a router, one for each replica, the newest first. */
  of(routerId: string): readonly Presence[]
  /** What a router could do when it was connected the last time. Undefined: this process has not seen it. */
  lastFeatures(routerId: string): RouterFeatures | undefined
  /**
   * Routers are connected to a replica of 0.1.0, during an upgrade. It refuses signed tokens of sessions, and accepts sessions
   * whose posture routers evaluate at any router.
   */
  hasFormerReplicas(): boolean
  /** Routers that are online, each with its newest connection. */
  online(): Iterable<Presence>
  /** Controller ids of the replicas whose lease lives. */
  replicas(): ReadonlySet<string>
  onChange(listener: PresenceListener): Disposable
}

/** Calls are synchronous, in the order of changes. */
export interface PresenceListener {
  /** A router has connected to its first replica, disconnected from its last one, or changed its link listeners. */
  routerChanged?(routerId: string): void
  /** A router has lost its connection to a replica, and may have others. */
  connectionEnded?(routerId: string): void
  /** The process of a replica has stopped, or its lease has ended. Another process may have its id already. */
  replicaEnded?(replicaId: string): void
}

/** A usable connection between two routers. */
export interface Link {
  readonly id: string
  readonly sourceId: string
  readonly destinationId: string
  readonly protocol: string
  readonly dialAddress: string
  readonly iteration: number
  readonly staticCost: number
  readonly sourceLatencyMs: number
  readonly destinationLatencyMs: number
  /** Taken out of service by an administrator. */
  readonly isDown: boolean
}

/** Routers in order, with the link between each two of them. */
export interface Path {
  readonly routerIds: readonly string[]
  readonly linkIds: readonly string[]
  readonly cost: number
}

/** Online routers and links of all replicas, in memory. */
export interface Topology {
  isOnline(routerId: string): boolean
  links(): Iterable<Link>
  /** The cheapest path. A path from a router to itself has no links and costs nothing. */
  path(fromRouterId: string, toRouterId: string): Path | undefined
}

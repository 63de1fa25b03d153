import type { Link } from '../domain/link.js'
import type { Path } from '../domain/link-graph.js'

export type { Link } from '../domain/link.js'
export type { Path } from '../domain/link-graph.js'

/** Online routers and links of all replicas, in memory. */
export interface Topology {
  isOnline(routerId: string): boolean
  links(): Iterable<Link>
  /** The cheapest path. A path from a router to itself has no links and costs nothing. */
  path(fromRouterId: string, toRouterId: string): Path | undefined
}

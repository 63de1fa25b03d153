import { LATENCIES_MS, MOST_TREES } from '../limits.js'
import { openHeap } from './heap.js'
import { isUsable, type Link, linkCost } from './link.js'

/** Routers in order, with the link between each two of them. */
export interface Path {
  readonly routerIds: readonly string[]
  readonly linkIds: readonly string[]
  readonly cost: number
}

export interface RouterCosts {
  readonly cost: number
  /** Circuits may begin and end at the router, but not pass it. */
  readonly noTraversal: boolean
}

interface Router {
  readonly id: string
  isOnline: boolean
  cost: number
  noTraversal: boolean
  readonly edges: Edge[]
}

interface Edge {
  link: Link
  cost: number
  readonly source: Router
  readonly destination: Router
}

/** The cheapest path to a router: its cost, and its last edge. */
interface Reached {
  readonly cost: number
  readonly lastEdge: Edge | undefined
  isDone: boolean
}

/** The cheapest paths from one router to those that can be reached. */
type Tree = ReadonlyMap<Router, Reached>

const LEAST_ROUTER_COST = 10

/**
 * Routers and links, and the cheapest paths over them. Paths from one router are computed together and kept until the graph changes. Latencies change all the time and may
 * take effect a second later. `now` is in milliseconds.
 */
export function openLinkGraph(now: () => number = () => performance.now()) {
  const routers = new Map<string, Router>()
  const edges = new Map<string, Edge>()
  const trees = new Map<Router, Tree>()
  let oldestLatency: number | undefined

  function routerOf(id: string): Router {
    const known = routers.get(id)
    if (known) return known
    const router: Router = { id, isOnline: false, cost: 0, noTraversal: false, edges: [] }
    routers.set(id, router)
    trees.clear()
    return router
  }

  function forgetUnused(router: Router): void {
    if (router.isOnline || router.edges.length > 0) return
    routers.delete(router.id)
    trees.clear()
  }

  function removeEdge(edge: Edge): void {
    edges.delete(edge.link.id)
    trees.clear()
    for (const router of new Set([edge.source, edge.destination])) {
      router.edges.splice(router.edges.indexOf(edge), 1)
      forgetUnused(router)
    }
  }

  function addEdge(link: Link): void {
    const [source, destination] = [routerOf(link.sourceId), routerOf(link.destinationId)]
    const edge = { link, cost: linkCost(link), source, destination }
    edges.set(link.id, edge)
    for (const router of new Set([source, destination])) router.edges.push(edge)
    trees.clear()
  }

  function treeOf(from: Router): Tree {
    const isLate = oldestLatency !== undefined && now() - oldestLatency >= LATENCIES_MS
    if (isLate) trees.clear()
    if (trees.size === 0) oldestLatency = undefined
    const known = trees.get(from)
    if (known) return known
    if (trees.size >= MOST_TREES) trees.clear()
    const tree = cheapestPaths(from)
    trees.set(from, tree)
    return tree
  }

  return {
    setLink(link: Link) {
      const edge = edges.get(link.id)
      if (!edge) return addEdge(link)
      const { link: before } = edge
      if (before.sourceId !== link.sourceId || before.destinationId !== link.destinationId) {
        removeEdge(edge)
        addEdge(link)
        return
      }
      edge.link = link
      edge.cost = linkCost(link)
      if (isUsable(before) !== isUsable(link) || before.staticCost !== link.staticCost) trees.clear()
      else oldestLatency ??= now()
    },

    deleteLink(id: string): void {
      const edge = edges.get(id)
      if (edge) removeEdge(edge)
    },

    setOnline(routerId: string, isOnline: boolean): void {
      if (!isOnline && !routers.has(routerId)) return
      const router = routerOf(routerId)
      if (router.isOnline === isOnline) return
      router.isOnline = isOnline
      trees.clear()
      forgetUnused(router)
    },

    setCosts(routerId: string, { cost, noTraversal }: RouterCosts): void {
      const router = routers.get(routerId)
      if (!router || (router.cost === cost && router.noTraversal === noTraversal)) return
      Object.assign(router, { cost, noTraversal })
      trees.clear()
    },

    /** Over usable links, between routers that are online. */
    path(fromId: string, toId: string): Path | undefined {
      const [from, to] = [routers.get(fromId), routers.get(toId)]
      if (!from?.isOnline || !to?.isOnline) return undefined
      if (from === to) return { routerIds: [fromId], linkIds: [], cost: 0 }
      const tree = treeOf(from)
      const reached = tree.get(to)
      if (!reached) return undefined
      const routerIds = [toId]
      const linkIds: string[] = []
      for (let at = to; at !== from; ) {
        const edge = tree.get(at)?.lastEdge
        if (!edge) throw new Error('a path has a gap')
        at = otherEnd(edge, at)
        routerIds.push(at.id)
        linkIds.push(edge.link.id)
      }
      return { routerIds: routerIds.reverse(), linkIds: linkIds.reverse(), cost: reached.cost }
    },
  }
}

const otherEnd = ({ source, destination }: Edge, router: Router): Router =>
  source === router ? destination : source

/** Dijkstra's algorithm. */
function cheapestPaths(from: Router): Tree {
  const tree = new Map<Router, Reached>([[from, { cost: 0, lastEdge: undefined, isDone: false }]])
  const heap = openHeap<Router>()
  heap.push(0, from)
  for (let router = heap.pop(); router; router = heap.pop()) {
    const reached = tree.get(router)
    if (!reached || reached.isDone) continue
    reached.isDone = true
    if (router.noTraversal && router !== from) continue
    for (const edge of router.edges) {
      const next = otherEnd(edge, router)
      if (!isUsable(edge.link) || !next.isOnline) continue
      const cost = reached.cost + edge.cost + Math.max(next.cost, LEAST_ROUTER_COST)
      const before = tree.get(next)
      if (before && before.cost <= cost) continue
      tree.set(next, { cost, lastEdge: edge, isDone: false })
      heap.push(cost, next)
    }
  }
  return tree
}

import fc from 'fast-check'
import { expect, test } from 'vitest'
import { isUsable, type Link } from './link.js'
import { openLinkGraph, type RouterCosts } from './link-graph.js'

const linkOf = (id: string, sourceId: string, destinationId: string, more: Partial<Link> = {}): Link => ({
  id,
  sourceId,
  destinationId,
  protocol: 'tls',
  dialAddress: '',
  iteration: 1,
  staticCost: 1,
  sourceLatencyMs: 2,
  destinationLatencyMs: 3,
  isDown: false,
  ...more,
})

/** A graph of online routers without costs of their own. */
function graphOf(links: readonly Link[], now?: () => number) {
  const graph = openLinkGraph(now)
  for (const link of links) {
    graph.setLink(link)
    for (const id of [link.sourceId, link.destinationId]) graph.setOnline(id, true)
  }
  return graph
}

test('a step costs the link, both its latencies, and the next router, at least 10', () => {
  const graph = graphOf([linkOf('l', 'a', 'b'), linkOf('m', 'c', 'b', { sourceLatencyMs: 2.9 })])
  graph.setCosts('c', { cost: 50, noTraversal: false })
  expect(graph.path('a', 'b')).toEqual({ routerIds: ['a', 'b'], linkIds: ['l'], cost: 6 + 10 })
  const path = { routerIds: ['a', 'b', 'c'], linkIds: ['l', 'm'], cost: 6 + 10 + 6 + 50 }
  expect(graph.path('a', 'c')).toEqual(path)
})

test('a path from a router to itself has no links, and offline routers have none', () => {
  const graph = graphOf([linkOf('l', 'a', 'b')])
  expect(graph.path('a', 'a')).toEqual({ routerIds: ['a'], linkIds: [], cost: 0 })
  graph.setOnline('b', false)
  expect(graph.path('a', 'b')).toBeUndefined()
  expect(graph.path('b', 'b')).toBeUndefined()
  expect(graph.path('a', 'x')).toBeUndefined()
})

test('links that are down or deleted, and routers that are offline, are avoided at once', () => {
  const graph = graphOf([
    linkOf('direct', 'a', 'd'),
    linkOf('ab', 'a', 'b'),
    linkOf('bd', 'b', 'd'),
    linkOf('slow', 'a', 'd', { staticCost: 1000 }),
  ])
  expect(graph.path('a', 'd')?.linkIds).toEqual(['direct'])
  graph.setLink(linkOf('direct', 'a', 'd', { isDown: true }))
  expect(graph.path('a', 'd')?.linkIds).toEqual(['ab', 'bd'])
  graph.setOnline('b', false)
  expect(graph.path('a', 'd')?.linkIds).toEqual(['slow'])
  graph.deleteLink('slow')
  expect(graph.path('a', 'd')).toBeUndefined()
  graph.setOnline('b', true)
  expect(graph.path('a', 'd')?.linkIds).toEqual(['ab', 'bd'])
})

test('routers without traversal are ends of paths only', () => {
  const graph = graphOf([linkOf('ab', 'a', 'b'), linkOf('bc', 'b', 'c')])
  graph.setCosts('b', { cost: 0, noTraversal: true })
  expect(graph.path('a', 'c')).toBeUndefined()
  expect(graph.path('a', 'b')?.linkIds).toEqual(['ab'])
  expect(graph.path('b', 'c')?.linkIds).toEqual(['bc'])
})

test('latencies take effect within a second, static costs at once', () => {
  let now = 0
  const graph = graphOf([linkOf('l', 'a', 'b'), linkOf('m', 'a', 'b', { staticCost: 5 })], () => now)
  const used = () => graph.path('a', 'b')?.linkIds
  expect(used()).toEqual(['l'])
  graph.setLink(linkOf('l', 'a', 'b', { sourceLatencyMs: 100 }))
  expect(used()).toEqual(['l'])
  now = 1000
  expect(used()).toEqual(['m'])
  graph.setLink(linkOf('m', 'a', 'b', { staticCost: 500 }))
  expect(used()).toEqual(['l'])
})

const ids = ['a', 'b', 'c', 'd', 'e', 'f']
const routerId = fc.constantFrom(...ids)
const change = fc.oneof(
  fc.record({
    link: fc.nat(9),
    ends: fc.uniqueArray(routerId, { minLength: 2, maxLength: 2 }),
    staticCost: fc.nat(30),
    isDown: fc.boolean(),
    isConfirmed: fc.boolean(),
  }),
  fc.record({ gone: fc.nat(9) }),
  fc.record({ router: routerId, isOnline: fc.boolean() }),
  fc.record({ router: routerId, cost: fc.nat(40), noTraversal: fc.boolean() }),
)

interface Model {
  readonly links: Map<string, Link>
  readonly online: Set<string>
  readonly costs: Map<string, RouterCosts>
}

/** The cost of the cheapest path, by trying all of them. */
function cheapest({ links, online, costs }: Model, fromId: string, toId: string): number {
  const walk = (at: string, visited: readonly string[]): number => {
    if (at === toId) return 0
    if (at !== fromId && costs.get(at)?.noTraversal) return Infinity
    const steps = [...links.values()].flatMap((link) => {
      if (!isUsable(link) || (link.sourceId !== at && link.destinationId !== at)) return []
      const next = link.sourceId === at ? link.destinationId : link.sourceId
      if (visited.includes(next) || !online.has(next)) return []
      const step = link.staticCost + 2 + 3 + Math.max(costs.get(next)?.cost ?? 0, 10)
      return [step + walk(next, [...visited, next])]
    })
    return Math.min(Infinity, ...steps)
  }
  return online.has(fromId) && online.has(toId) ? walk(fromId, [fromId]) : Infinity
}

test('after any changes, paths are connected and as cheap as the cheapest of all', () => {
  fc.assert(
    fc.property(fc.array(change, { maxLength: 40 }), routerId, routerId, (changes, fromId, toId) => {
      const model: Model = { links: new Map(), online: new Set(), costs: new Map() }
      const graph = openLinkGraph()
      for (const made of changes) {
        if ('link' in made) {
          const [sourceId = '', destinationId = ''] = made.ends
          const link = linkOf(`${made.link}`, sourceId, destinationId, made)
          model.links.set(link.id, link)
          graph.setLink(link)
        } else if ('gone' in made) {
          model.links.delete(`${made.gone}`)
          graph.deleteLink(`${made.gone}`)
        } else if ('isOnline' in made) {
          if (made.isOnline) model.online.add(made.router)
          else model.online.delete(made.router)
          graph.setOnline(made.router, made.isOnline)
          graph.setCosts(made.router, model.costs.get(made.router) ?? { cost: 0, noTraversal: false })
        } else {
          model.costs.set(made.router, made)
          graph.setCosts(made.router, made)
        }
        const path = graph.path(fromId, toId)
        expect(path?.cost ?? Infinity).toBe(cheapest(model, fromId, toId))
        if (!path) continue
        expect([path.routerIds[0], path.routerIds.at(-1)]).toEqual([fromId, toId])
        for (const [i, id] of path.linkIds.entries()) {
          const link = model.links.get(id)
          const ends = [path.routerIds[i], path.routerIds[i + 1]]
          expect([link?.sourceId, link?.destinationId].sort()).toEqual(ends.sort())
        }
      }
    }),
    { numRuns: 500 },
  )
})

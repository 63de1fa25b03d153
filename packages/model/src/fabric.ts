import { defineEntity } from './kernel/entity.js'
import { field } from './kernel/field.js'
import { listOf, named, object, reference, texts } from './kernel/schema.js'

// Collections of the fabric API alone. Their rows are views of what routers report, and cannot be created.

/** A connection between two routers. */
export const link = defineEntity({
  kind: 'links',
  singular: 'link',
  owner: 'sessions',
  table: 'link_view',
  fields: {
    protocol: field.string({ write: '---' }),
    dialAddress: field.string({ write: '---', hidden: true }),
    sourceRouter: field.string({ write: '---', hidden: true }),
    destRouter: field.string({ write: '---', hidden: true }),
    state: field.string({ write: '---' }),
    down: field.bool({ write: '--O' }),
    staticCost: field.integer({ write: '--O', min: 0, max: 0x7fffffff }),
    sourceLatency: field.integer({ write: '---' }), // nanoseconds
    destLatency: field.integer({ write: '---' }),
    cost: field.integer({ write: '---' }),
    iteration: field.integer({ write: '---' }),
  },
  shows: {
    always: { sourceRouter: reference, destRouter: reference },
    sometimes: { connections: listOf(named('linkConnection', object(texts('type', 'source', 'dest')))) },
  },
})

/** A connection of a client to a terminator over one or more routers. */
export const circuit = defineEntity({
  kind: 'circuits',
  singular: 'circuit',
  owner: 'sessions',
  table: 'circuit_view',
  fields: {
    clientId: field.string({ write: '---' }),
    service: field.string({ write: '---', hidden: true }),
    terminator: field.string({ write: '---', hidden: true }),
    routerIds: field.strings({ write: '---', filter: false, hidden: true }),
    linkIds: field.strings({ write: '---', filter: false, hidden: true }),
  },
  shows: {
    always: {
      path: named('path', object({ nodes: listOf(reference), links: listOf(reference) })),
      service: reference,
      terminator: reference,
    },
  },
})

/** How one entity of the fabric API names another. */
export const fabricReference = (entity: keyof typeof nested, id: string, name?: string) => ({
  _links: fabricLinksOf(entity, id),
  entity,
  id,
  ...(name !== undefined && { name }),
})

export function fabricLinksOf(kind: keyof typeof nested, id: string): Record<string, { href: string }> {
  const self = `./${kind}/${id}`
  const below = nested[kind].map((name) => [name, { href: `${self}/${name}` }])
  return { self: { href: self }, ...Object.fromEntries(below) }
}

const nested = {
  circuits: ['services', 'terminators'],
  links: [],
  routers: ['terminators'],
  services: ['terminators'],
  terminators: [],
} as const

import {
  circuit,
  defineEntity,
  type Entity,
  fabricLinksOf,
  fabricReference,
  field,
  link,
  routerListener,
  service,
  terminator,
  transitRouter,
  versionInfo,
} from '@overlay/model'
import { flag, listOf, orNull, reference, text } from '@overlay/model/schema'

type Row = Readonly<Record<string, unknown>> & { readonly id: string }

/** A collection of the fabric API: a view of the rows of one kind. */
export interface FabricView {
  readonly path: 'circuits' | 'links' | 'routers' | 'services' | 'terminators'
  /** The kind of the rows. */
  readonly of: Entity
  /** The members of bodies and answers. */
  readonly shape: Entity
  /** Members of the kind that have other names here. */
  readonly renamed?: Readonly<Record<string, string>>
  /** The symbol of terminators that holds the id of a row. */
  readonly terminatorsBy?: string
  show(row: Row): object
}

const cost = { min: 0, max: 65_535 }

const routerShape = defineEntity({
  kind: 'routers',
  singular: 'router',
  owner: 'sessions',
  fields: {
    id: field.string({ write: 'R--', min: 1, max: 64 }),
    name: field.string({ write: 'RRO', min: 1 }),
    fingerprint: field.string({ write: 'ORO', nullable: true, max: 40 }),
    cost: field.integer({ write: 'RRO', ...cost }),
    noTraversal: field.bool({ write: 'RRO' }),
    disabled: field.bool(),
  },
  shows: {
    always: { connected: flag, listenerAddresses: orNull(listOf(routerListener)) },
    sometimes: { versionInfo },
  },
})

const serviceShape = defineEntity({
  kind: 'services',
  singular: 'service',
  owner: 'policy',
  fields: { name: field.string({ write: 'RRO', min: 1 }), terminatorStrategy: field.string() },
})

const terminatorShape = defineEntity({
  kind: 'terminators',
  singular: 'terminator',
  owner: 'sessions',
  fields: {
    service: field.string({ write: 'RRO' }),
    router: field.string({ write: 'RRO' }),
    binding: field.string({ write: 'RRO' }),
    address: field.string({ write: 'RRO' }),
    instanceId: field.string({ write: 'O--' }),
    instanceSecret: field.string({ write: 'O--', format: 'byte', secret: true }),
    hostId: field.string(),
    cost: field.integer(cost),
    precedence: field.oneOf(['default', 'required', 'failed']),
    dynamicCost: field.integer({ write: '---' }),
  },
  shows: { always: { routerId: text, serviceId: text, router: reference, service: reference } },
})

/** The entity that a kind refers to, as the fabric API names it. */
const named = (path: FabricView['path'], target: unknown): object => {
  const { id, name } = target as { id: string; name?: string }
  return fabricReference(path, id, name)
}

const base = (path: FabricView['path'], { id, createdAt, updatedAt, tags }: Row) => ({
  _links: fabricLinksOf(path, id),
  createdAt,
  id,
  tags,
  updatedAt,
})

/** All collections of the fabric API. */
export const fabricViews: readonly FabricView[] = [
  { path: 'circuits', of: circuit, shape: circuit, show: (row) => row },
  {
    path: 'links',
    of: link,
    shape: link,
    // wire: links have none of the members of every entity but the id
    show: ({ _links, createdAt, updatedAt, tags, ...row }) => row,
  },
  {
    path: 'routers',
    of: transitRouter,
    shape: routerShape,
    terminatorsBy: 'router',
    show: (row) => ({
      ...base('routers', row),
      connected: row.isOnline,
      cost: row.cost,
      disabled: row.disabled,
      fingerprint: row.fingerprint,
      listenerAddresses: row.listenerAddresses ?? null,
      name: row.name,
      noTraversal: row.noTraversal,
      versionInfo: row.versionInfo,
    }),
  },
  {
    path: 'services',
    of: service,
    shape: serviceShape,
    terminatorsBy: 'service',
    show: (row) => ({
      ...base('services', row),
      name: row.name,
      terminatorStrategy: row.terminatorStrategy,
    }),
  },
  {
    path: 'terminators',
    of: terminator,
    shape: terminatorShape,
    renamed: { identity: 'instanceId', identitySecret: 'instanceSecret' },
    show: (row) => ({
      ...base('terminators', row),
      address: row.address,
      binding: row.binding,
      cost: row.cost,
      dynamicCost: row.dynamicCost,
      hostId: row.hostId,
      instanceId: row.identity,
      precedence: row.precedence,
      router: named('routers', row.router),
      routerId: row.routerId,
      service: named('services', row.service),
      serviceId: row.serviceId,
    }),
  },
]

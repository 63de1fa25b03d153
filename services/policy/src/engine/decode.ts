import { createHash } from 'node:crypto'
import type { Semantic } from '@overlay/model'
import type { Change } from '@overlay/rpc'
import type { FedKind, Rows } from '../domain/changes.js'
import type { AccessType } from '../domain/policies.js'
import type { Check } from '../domain/posture/check.js'
import type { PostureData } from '../domain/posture/data.js'

type List = readonly string[] | null

/** What the engine reads of a row that its owner tells; a kind has some of the members. */
interface Told extends Omit<Check, 'semantic'> {
  readonly name: string
  readonly roleAttributes: List
  readonly isAdmin: boolean
  readonly isEdge: boolean
  readonly configs: List
  readonly configTypeId: string
  readonly identityId: string
  readonly serviceId: string
  readonly configId: string
  readonly type: AccessType
  readonly semantic: Semantic
  readonly identityRoles: List
  readonly serviceRoles: List
  readonly edgeRouterRoles: List
  readonly postureCheckRoles: List
  readonly data: PostureData
}

type Decoders = { readonly [K in FedKind]: (id: string, told: Told, revision: () => string) => Rows[K] }

/** The rows of each kind as the engine wants them. A row that it read once reads the same in every replica. */
const decoders: Decoders = {
  identities: (id, { roleAttributes, isAdmin }) => ({ id, attributes: roleAttributes ?? [], isAdmin }),
  services: (id, { roleAttributes, configs }, revision) => ({
    id,
    attributes: roleAttributes ?? [],
    configIds: configs ?? [],
    revision: revision(),
  }),
  'edge-routers': (id, { roleAttributes }) => ({ id, attributes: roleAttributes ?? [] }),
  'posture-checks': (id, told, revision) => ({
    id,
    attributes: told.roleAttributes ?? [],
    revision: revision(),
    check: told,
  }),
  'posture-data': (id, { data }) => ({ id, data }),
  configs: (id, { configTypeId }, revision) => ({ id, typeId: configTypeId, revision: revision() }),
  'config-types': (id, { name }) => ({ id, name }),
  'service-configs': (id, { identityId, serviceId, configId }) => ({ id, identityId, serviceId, configId }),
  'service-policies': (id, { type, semantic, identityRoles, serviceRoles, postureCheckRoles }) => ({
    id,
    type,
    semantic,
    identityRoles: identityRoles ?? [],
    serviceRoles: serviceRoles ?? [],
    postureCheckRoles: postureCheckRoles ?? [],
  }),
  'edge-router-policies': (id, { semantic, identityRoles, edgeRouterRoles }) => ({
    id,
    semantic,
    roles: identityRoles ?? [],
    edgeRouterRoles: edgeRouterRoles ?? [],
  }),
  'service-edge-router-policies': (id, { semantic, serviceRoles, edgeRouterRoles }) => ({
    id,
    semantic,
    roles: serviceRoles ?? [],
    edgeRouterRoles: edgeRouterRoles ?? [],
  }),
}

export const isFed = (kind: string): kind is FedKind => kind in decoders

/** The row, or null where it is gone; with the name that others know it by. */
export function decode<K extends FedKind>(
  kind: K,
  { id, json }: Change,
): { readonly row: Rows[K]; readonly name: string } | null {
  if (json.length === 0) return null
  const told = JSON.parse(Buffer.from(json).toString()) as Told
  if (told.isEdge === false) return null // a transit router carries no services
  return { row: decoders[kind](id, told, () => revisionOf(told)), name: told.name }
}

/** Of what the row says, not of its bytes: the database orders members in its own way. */
function revisionOf(told: Told): string {
  const sorted = (_key: string, value: unknown): unknown =>
    value !== null && typeof value === 'object' && !Array.isArray(value)
      ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
      : value
  return createHash('sha256').update(JSON.stringify(told, sorted)).digest('base64url').slice(0, 22)
}

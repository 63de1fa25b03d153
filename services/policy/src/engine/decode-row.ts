import { createHash } from 'node:crypto'
import type {
  config,
  configType,
  edgeRouter,
  edgeRouterPolicy,
  identity,
  PlainOf,
  postureCheck,
  service,
  serviceEdgeRouterPolicy,
  servicePolicy,
} from '@overlay/model'
import type { Change } from '@overlay/rpc'
import { canonicalJson } from '../domain/canonical-json.js'
import type { PostureData } from '../domain/posture/posture-data.js'
import type { AccessType, EngineKind, IdentitySettings, Override, Rows } from '../domain/rows.js'

/** What changes of each kind carry. */
interface Payloads {
  readonly identities: PlainOf<typeof identity>
  readonly services: PlainOf<typeof service>
  readonly 'edge-routers': PlainOf<typeof edgeRouter>
  readonly 'posture-checks': PlainOf<typeof postureCheck>
  /** `lapsedAt` is missing in changes by replicas of the previous release. */
  readonly 'posture-data': { readonly data: PostureData; readonly lapsedAt?: string | null }
  readonly configs: PlainOf<typeof config>
  readonly 'config-types': PlainOf<typeof configType>
  readonly 'service-configs': Omit<Override, 'id'>
  readonly 'service-policies': PlainOf<typeof servicePolicy>
  readonly 'edge-router-policies': PlainOf<typeof edgeRouterPolicy>
  readonly 'service-edge-router-policies': PlainOf<typeof serviceEdgeRouterPolicy>
}

/** Null: the engine does not need the row. */
type Decoders = {
  readonly [K in EngineKind]: (id: string, payload: Payloads[K], revision: () => string) => Rows[K] | null
}

/** A row that is decoded once is decoded equally in every replica. */
const decoders: Decoders = {
  identities: (id, identity) => ({
    id,
    attributes: identity.roleAttributes ?? [],
    isAdmin: identity.isAdmin,
    settings: settingsOf(identity),
  }),
  services: (id, { roleAttributes, configs, encryptionRequired }, revision) => ({
    id,
    attributes: roleAttributes ?? [],
    configIds: configs ?? [],
    encryptionRequired,
    revision: revision(),
  }),
  // a transit router carries no services
  'edge-routers': (id, { roleAttributes, isEdge }) =>
    isEdge === false ? null : { id, attributes: roleAttributes ?? [] },
  'posture-checks': (id, check, revision) => ({
    id,
    attributes: check.roleAttributes ?? [],
    revision: revision(),
    check,
  }),
  'posture-data': (id, { data, lapsedAt }) => ({ id, data, lapsedAtMs: lapsedAt ? Date.parse(lapsedAt) : 0 }),
  configs: (id, { configTypeId, data }, revision) => ({
    id,
    typeId: configTypeId,
    revision: revision(),
    data: canonicalJson(data),
  }),
  'config-types': (id, { name }) => ({ id, name }),
  'service-configs': (id, { identityId, serviceId, configId }) => ({ id, identityId, serviceId, configId }),
  'service-policies': (id, { type, semantic, identityRoles, serviceRoles, postureCheckRoles }) => ({
    id,
    type: type as AccessType, // 'Invalid' is never stored
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

/** Undefined: the defaults. */
function settingsOf(identity: Partial<Payloads['identities']>): IdentitySettings | undefined {
  const { serviceHostingCosts, serviceHostingPrecedences, appData, disabledAt, disabledUntil } = identity
  const settings = {
    isDisabled: Boolean(disabledAt) && !disabledUntil,
    cost: identity.defaultHostingCost ?? 0,
    precedence: identity.defaultHostingPrecedence || 'default',
    serviceCosts: (serviceHostingCosts ?? {}) as IdentitySettings['serviceCosts'],
    servicePrecedences: (serviceHostingPrecedences ?? {}) as IdentitySettings['servicePrecedences'],
    appData: appData && Object.keys(appData).length > 0 ? canonicalJson(appData) : '',
  }
  const { isDisabled, cost, precedence, serviceCosts, servicePrecedences } = settings
  const isDefault =
    !isDisabled &&
    cost === 0 &&
    precedence === 'default' &&
    settings.appData === '' &&
    Object.keys(serviceCosts).length + Object.keys(servicePrecedences).length === 0
  return isDefault ? undefined : settings
}

export const isEngineKind = (kind: string): kind is EngineKind => kind in decoders

/** The row as the engine keeps it, and its name; null: it is deleted or not needed. */
export function decodeRow<K extends EngineKind>(
  kind: K,
  { id, json }: Change,
): { readonly row: Rows[K]; readonly name: string } | null {
  if (json.length === 0) return null
  const payload = JSON.parse(Buffer.from(json).toString()) as Payloads[K] & { readonly name: string }
  const row = decoders[kind](id, payload, () => revisionOf(payload))
  return row && { row, name: payload.name }
}

/** A digest of the row's content. It does not depend on the order of members, which the database changes. */
function revisionOf(payload: object): string {
  return createHash('sha256').update(canonicalJson(payload)).digest('base64url').slice(0, 22)
}

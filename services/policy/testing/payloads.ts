import type { EngineKind, Rows } from '../src/domain/rows.js'

/** The payload of a change that the engine decodes to this row. */
export const payloads: { readonly [K in EngineKind]: (row: Rows[K]) => object } = {
  identities: ({ attributes, isAdmin, settings }) => ({
    roleAttributes: attributes,
    isAdmin,
    disabledAt: settings?.isDisabled ? '2026-01-01T00:00:00Z' : null,
    disabledUntil: null,
    defaultHostingCost: settings?.cost ?? 0,
    defaultHostingPrecedence: settings?.precedence ?? 'default',
    serviceHostingCosts: settings?.serviceCosts ?? {},
    serviceHostingPrecedences: settings?.servicePrecedences ?? {},
    appData: settings?.appData ? JSON.parse(settings.appData) : {},
  }),
  services: ({ attributes, configIds, encryptionRequired }) => ({
    roleAttributes: attributes,
    configs: configIds,
    encryptionRequired,
  }),
  'edge-routers': ({ attributes }) => ({ roleAttributes: attributes, isEdge: true }),
  'posture-checks': ({ attributes, check: { name: _, ...check } }) => ({
    ...check,
    roleAttributes: attributes,
  }),
  'posture-data': ({ data }) => ({ data, lapsedAt: null }),
  configs: ({ typeId, data }) => ({ configTypeId: typeId, data: JSON.parse(data) }),
  'config-types': ({ name }) => ({ name }),
  'service-configs': ({ identityId, serviceId, configId }) => ({ identityId, serviceId, configId }),
  'service-policies': (policy) => policy,
  'edge-router-policies': ({ semantic, roles, edgeRouterRoles }) => ({
    semantic,
    identityRoles: roles,
    edgeRouterRoles,
  }),
  'service-edge-router-policies': ({ semantic, roles, edgeRouterRoles }) => ({
    semantic,
    serviceRoles: roles,
    edgeRouterRoles,
  }),
}

export function payloadOf<K extends EngineKind>(kind: K, row: Rows[K], name: string): Buffer {
  // a config type has a name of its own
  return Buffer.from(JSON.stringify({ name, ...payloads[kind](row) }))
}

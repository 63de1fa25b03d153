import { parseRoles, type Semantic, selects } from '@overlay/model'
import type {
  AccessType,
  EngineKind,
  Identity,
  RouterPolicy,
  Rows,
  ServicePolicy,
} from '../src/domain/rows.js'

/** What the engine ought to know, as plain tables. Every answer is computed from all rows. */
export type World = { readonly [K in EngineKind]: ReadonlyMap<string, Rows[K]> }

export const emptyWorld: World = {
  identities: new Map(),
  services: new Map(),
  'edge-routers': new Map(),
  'posture-checks': new Map(),
  'posture-data': new Map(),
  configs: new Map(),
  'config-types': new Map(),
  'service-configs': new Map(),
  'service-policies': new Map(),
  'edge-router-policies': new Map(),
  'service-edge-router-policies': new Map(),
}

interface Attributed {
  readonly id: string
  readonly attributes: readonly string[]
}

/** The ids that a role list selects. */
export const chosen = (
  list: readonly string[],
  semantic: Semantic,
  among: ReadonlyMap<string, Attributed>,
): string[] =>
  [...among.values()]
    .filter(({ id, attributes }) =>
      selects(parseRoles(list), semantic, { id, attributes: new Set(attributes) }),
    )
    .map(({ id }) => id)
    .sort()

export const policiesLinking = (world: World, identityId: string, serviceId: string): ServicePolicy[] =>
  [...world['service-policies'].values()].filter(
    ({ identityRoles, serviceRoles, semantic }) =>
      chosen(identityRoles, semantic, world.identities).includes(identityId) &&
      chosen(serviceRoles, semantic, world.services).includes(serviceId),
  )

export const usable = (world: World, identityId: string, type?: AccessType): string[] =>
  [...world.services.keys()]
    .filter((id) => policiesLinking(world, identityId, id).some((p) => !type || p.type === type))
    .sort()

export const checksAsked = (world: World, policy: ServicePolicy): string[] =>
  chosen(policy.postureCheckRoles, policy.semantic, world['posture-checks'])

const farEnds = (
  policies: ReadonlyMap<string, RouterPolicy>,
  near: ReadonlyMap<string, Attributed>,
  id: string,
  world: World,
): Set<string> =>
  new Set(
    [...policies.values()]
      .filter(({ roles, semantic }) => chosen(roles, semantic, near).includes(id))
      .flatMap(({ edgeRouterRoles, semantic }) => chosen(edgeRouterRoles, semantic, world['edge-routers'])),
  )

export function routersBetween(world: World, identityId: string, serviceId: string): string[] {
  const ofService = routersForService(world, serviceId)
  return routersFor(world, identityId).filter((id) => ofService.includes(id))
}

export const routersForService = (world: World, serviceId: string): string[] =>
  [...farEnds(world['service-edge-router-policies'], world.services, serviceId, world)].sort()

export const routersFor = (world: World, identityId: string): string[] =>
  [...farEnds(world['edge-router-policies'], world.identities, identityId, world)].sort()

/** All checks here are of one type: the reported domain is one of the required ones. */
function askedOf(world: World, identityId: string, checkId: string): unknown {
  const asked = world['posture-checks'].get(checkId)
  const reported = world['posture-data'].get(identityId)?.data.domain?.domain
  return [checkId, asked?.revision, reported !== undefined && asked?.check.domains?.includes(reported)]
}

/** Everything that the identity's list of services shows. */
export function listOf(world: World, { id, isAdmin }: Identity): string {
  const configOf = (configId: string) => {
    const config = world.configs.get(configId)
    return config && [config.revision, world['config-types'].get(config.typeId)?.name]
  }
  const rows = (isAdmin ? [...world.services.keys()].sort() : usable(world, id)).map((serviceId) => {
    const service = world.services.get(serviceId)
    const policies = policiesLinking(world, id, serviceId)
    return [
      serviceId,
      service?.revision,
      service?.configIds.map((config) => [config, configOf(config)]),
      (['Bind', 'Dial'] as const).filter((type) => policies.some((policy) => policy.type === type)),
      [...world['service-configs'].values()]
        .filter((o) => o.identityId === id && o.serviceId === serviceId)
        .map(({ configId }) => [configId, configOf(configId)])
        .sort(),
      world['posture-checks'].size > 0 &&
        policies
          .map((policy) => [
            policy.id,
            policy.type,
            checksAsked(world, policy).map((check) => askedOf(world, id, check)),
          ])
          .sort(),
    ]
  })
  return JSON.stringify(rows)
}

/** The posture checks that each policy asks for each service. */
export const demandsOf = (world: World): Map<string, Set<string>> => {
  const demands = new Map<string, Set<string>>()
  for (const policy of world['service-policies'].values()) {
    const checks = checksAsked(world, policy).map((id) => `${policy.id} ${id}`)
    for (const service of chosen(policy.serviceRoles, policy.semantic, world.services)) {
      demands.set(service, new Set([...(demands.get(service) ?? []), ...checks]))
    }
  }
  return demands
}

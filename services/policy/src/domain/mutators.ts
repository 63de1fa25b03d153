import {
  type Config,
  type ConfigType,
  putConfig,
  putConfigType,
  putOverride,
  removeConfig,
  removeConfigType,
  removeOverride,
} from './configs.js'
import { audienceOf, type Effect } from './effect.js'
import {
  type Identity,
  type IdentityPosture,
  type PostureCheck,
  putIdentity,
  putPostureCheck,
  putPostureData,
  putRouter,
  putService,
  type Router,
  removeIdentity,
  removePostureCheck,
  removePostureData,
  removeRouter,
  removeService,
  type Service,
} from './entities.js'
import {
  putServicePolicy,
  type RouterPolicy,
  removeServicePolicy,
  routerPolicies,
  type ServicePolicy,
} from './policies.js'
import type { Override, State } from './state.js'

/** The rows that the engine keeps, by kind. */
export interface Rows {
  readonly identities: Identity
  readonly services: Service
  readonly 'edge-routers': Router
  readonly 'posture-checks': PostureCheck
  readonly 'posture-data': IdentityPosture
  readonly configs: Config
  readonly 'config-types': ConfigType
  readonly 'service-configs': Override
  readonly 'service-policies': ServicePolicy
  readonly 'edge-router-policies': RouterPolicy
  readonly 'service-edge-router-policies': RouterPolicy
}

export type EngineKind = keyof Rows

export interface RowMutator<Row> {
  put(state: State, row: Row): Effect
  remove(state: State, id: string): Effect
}

/** Creates, replaces and deletes rows of the engine. An effect says whose times and lists of services may change. */
export const mutators: { readonly [K in EngineKind]: RowMutator<Rows[K]> } = {
  identities: { put: putIdentity, remove: removeIdentity },
  services: { put: putService, remove: removeService },
  'edge-routers': { put: putRouter, remove: removeRouter },
  'posture-checks': { put: putPostureCheck, remove: removePostureCheck },
  'posture-data': { put: putPostureData, remove: removePostureData },
  configs: { put: putConfig, remove: removeConfig },
  'config-types': { put: putConfigType, remove: removeConfigType },
  'service-configs': { put: putOverride, remove: removeOverride },
  'service-policies': { put: putServicePolicy, remove: removeServicePolicy },
  'edge-router-policies': routerPolicies(
    ({ identityRouters }) => identityRouters,
    (_, identities) => identities,
  ),
  'service-edge-router-policies': routerPolicies(({ serviceRouters }) => serviceRouters, audienceOf),
}

export const engineKinds = Object.keys(mutators) as EngineKind[]

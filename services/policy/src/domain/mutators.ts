import {
  putConfig,
  putConfigType,
  putOverride,
  removeConfig,
  removeConfigType,
  removeOverride,
} from './config-mutators.js'
import { audienceOf, type Effect } from './effect.js'
import {
  putIdentity,
  putPostureCheck,
  putPostureData,
  putRouter,
  putService,
  removeIdentity,
  removePostureCheck,
  removePostureData,
  removeRouter,
  removeService,
} from './entity-mutators.js'
import { putServicePolicy, removeServicePolicy, routerPolicies } from './policy-mutators.js'
import type { EngineKind, Rows } from './rows.js'
import type { State } from './state.js'

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

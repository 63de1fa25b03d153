import type { ForeignKind } from '@overlay/platform/kind-store'
import { policiesOf } from '../domain/queries.js'
import type { Engine } from '../engine/engine.js'
import { farRoles, policyIds, selectsOf, servicePoliciesOf } from './selects.js'

/** Links of identities that policies make. */
export const identityLinks = (engine: Engine): ForeignKind => {
  const { state } = engine
  return {
    selects: selectsOf(engine, {
      services: (id, perspective) => farRoles(servicePoliciesOf(state, perspective, 'left', id)),
      'service-policies': (id) => policyIds(servicePoliciesOf(state, undefined, 'left', id)),
      'edge-routers': (id) => farRoles(policiesOf(state.identityRouters, 'left', id)),
      'edge-router-policies': (id) => policyIds(policiesOf(state.identityRouters, 'left', id)),
    }),
  }
}

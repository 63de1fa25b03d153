import { edgeRouter, identity } from '@overlay/model'
import type { ForeignKind } from '@overlay/store/kind-store'
import { policiesOf } from '../domain/state-queries.js'
import type { Engine } from '../engine/engine.js'
import { farRoles, policyIds, selectsOf, servicePoliciesOf } from './selects.js'

/** What policies say of kinds that other services own: their links. */
export function foreign(engine: Engine): Readonly<Record<string, ForeignKind>> {
  const { state } = engine
  const { identityRouters, serviceRouters } = state
  return {
    [identity.kind]: {
      selects: selectsOf(engine, ['policy', 'identity'], {
        services: (id, perspective) => farRoles(servicePoliciesOf(state, perspective, 'left', id)),
        'service-policies': (id) => policyIds(servicePoliciesOf(state, undefined, 'left', id)),
        'edge-routers': (id) => farRoles(policiesOf(identityRouters, 'left', id)),
        'edge-router-policies': (id) => policyIds(policiesOf(identityRouters, 'left', id)),
      }),
    },
    [edgeRouter.kind]: {
      selects: selectsOf(engine, ['policy', 'sessions'], {
        identities: (id) => farRoles(policiesOf(identityRouters, 'right', id)),
        'edge-router-policies': (id) => policyIds(policiesOf(identityRouters, 'right', id)),
        services: (id) => farRoles(policiesOf(serviceRouters, 'right', id)),
        'service-edge-router-policies': (id) => policyIds(policiesOf(serviceRouters, 'right', id)),
      }),
    },
  }
}

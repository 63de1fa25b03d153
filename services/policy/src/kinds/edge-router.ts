import type { ForeignKind } from '@overlay/platform/kind-store'
import { policiesOf } from '../domain/queries.js'
import type { Engine } from '../engine/engine.js'
import { farRoles, policyIds, selectsOf } from './selects.js'

/** Links of edge routers that policies make. */
export const edgeRouterLinks = (engine: Engine): ForeignKind => {
  const { identityRouters, serviceRouters } = engine.state
  return {
    selects: selectsOf(engine, {
      identities: (id) => farRoles(policiesOf(identityRouters, 'right', id)),
      'edge-router-policies': (id) => policyIds(policiesOf(identityRouters, 'right', id)),
      services: (id) => farRoles(policiesOf(serviceRouters, 'right', id)),
      'service-edge-router-policies': (id) => policyIds(policiesOf(serviceRouters, 'right', id)),
    }),
  }
}

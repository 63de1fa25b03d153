import { noRows } from '@overlay/platform/kind-store'
import type { Perspective, Selection } from '@overlay/rpc'
import { type FarRoles, policiesOf } from '../domain/queries.js'
import type { State } from '../domain/state.js'

type Select = (state: State, id: string, perspective: Perspective | undefined) => Selection

/** Linked lists that follow from policies, by the kind they start from. Answered in roles: whoever owns the far kind resolves them. */
export const selects: Readonly<Record<string, Readonly<Record<string, Select>>>> = {
  identities: {
    services: (state, id, perspective) => far(granting(state, perspective, 'left', id)),
    'service-policies': (state, id) => near(granting(state, undefined, 'left', id)),
    'edge-routers': ({ identityRouters }, id) => far(policiesOf(identityRouters, 'left', id)),
    'edge-router-policies': ({ identityRouters }, id) => near(policiesOf(identityRouters, 'left', id)),
  },
  services: {
    identities: (state, id, perspective) => far(granting(state, perspective, 'right', id)),
    'service-policies': (state, id) => near(granting(state, undefined, 'right', id)),
    'edge-routers': ({ serviceRouters }, id) => far(policiesOf(serviceRouters, 'left', id)),
    'service-edge-router-policies': ({ serviceRouters }, id) => near(policiesOf(serviceRouters, 'left', id)),
  },
  'edge-routers': {
    identities: ({ identityRouters }, id) => far(policiesOf(identityRouters, 'right', id)),
    'edge-router-policies': ({ identityRouters }, id) => near(policiesOf(identityRouters, 'right', id)),
    services: ({ serviceRouters }, id) => far(policiesOf(serviceRouters, 'right', id)),
    'service-edge-router-policies': ({ serviceRouters }, id) => near(policiesOf(serviceRouters, 'right', id)),
  },
}

/** Service policies that select the entity: of both types, unless one is asked for. */
function granting(
  { dial, bind }: State,
  perspective: Perspective | undefined,
  side: 'left' | 'right',
  id: string,
): FarRoles[] {
  const asked = perspective?.policyType ?? ''
  return [
    ...(asked === 'bind' ? [] : policiesOf(dial, side, id)),
    ...(asked === 'dial' ? [] : policiesOf(bind, side, id)),
  ]
}

/** The policies themselves. */
const near = (policies: readonly FarRoles[]): Selection => ({
  ...noRows,
  ids: policies.map(({ policyId }) => policyId),
})

/** What they link the entity with. */
const far = (policies: readonly FarRoles[]): Selection => ({
  ...noRows,
  roles: policies.map(({ roles, semantic }) => ({ roles: [...roles], semantic })),
})

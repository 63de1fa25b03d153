import { intersection } from '../bitset.js'
import type { AccessType } from '../rows.js'
import type { State } from '../state.js'
import { grantingPolicies, reachOf, routersOfIdentity, routersOfService } from '../state-queries.js'
import { evaluatePolicies, type Requester, requiredChecks } from './evaluate-policies.js'

/** An access that policies grant, and the routers for it. */
export interface Grant {
  readonly serviceId: string
  readonly type: AccessType
  readonly policyIds: readonly string[]
  readonly routerIds: readonly string[]
}

/**
 * Whether the evaluation of these policies changes only with changes that name the identity. False: one of them asks for
 * the second factor, which counts for one API session, and lapses by time.
 */
export const isLasting = (state: State, policyIds: readonly string[]): boolean =>
  policyIds.every((id) => requiredChecks(state, id).every(({ typeId }) => typeId !== 'MFA'))

/** Grants of an identity that last, `most` at most. */
export function lastingGrants(state: State, requester: Requester, most: number): Grant[] {
  const { identityId } = requester
  const ofIdentity = routersOfIdentity(state, identityId)
  const grants: Grant[] = []
  for (const type of ['Dial', 'Bind'] as const)
    for (const serviceId of state.services.idsOf(reachOf(state, identityId, type))) {
      if (grants.length === most) return grants
      const linking = grantingPolicies(state, identityId, serviceId, type)
      if (!isLasting(state, linking)) continue
      const policyIds = evaluatePolicies(state, linking, requester).passing
      const routers = intersection(ofIdentity, routersOfService(state, serviceId))
      const routerIds = state.routers.idsOf(routers).sort()
      if (policyIds.length > 0 && routerIds.length > 0) grants.push({ serviceId, type, policyIds, routerIds })
    }
  return grants
}

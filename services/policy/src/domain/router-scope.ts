import { addAll, type Bitset, emptySet } from './bitset.js'
import type { Relation } from './relation.js'
import type { State } from './state.js'

/** What a router may know: what edge router policies and service edge router policies grant it. */
export interface RouterScope {
  /** Scopes with equal keys are equal, in one state. */
  readonly key: string
  readonly identities: Bitset
  readonly services: Bitset
}

/** The policies that select the router. None for an unknown router. */
export function policiesOfRouter({ right }: Relation, routerId: string): string[] {
  const number = right.population.numberOf(routerId)
  if (number === undefined) return []
  return [...right.open, ...right.selecting(number)].map(({ policyId }) => policyId).sort()
}

export function routerScope({ identityRouters, serviceRouters }: State, routerId: string): RouterScope {
  const grantedBy = (relation: Relation) => {
    const policyIds = policiesOfRouter(relation, routerId)
    const granted = emptySet()
    for (const policyId of policyIds) addAll(granted, relation.left.membersOf(policyId))
    return { policyIds, granted }
  }
  const [ofIdentities, ofServices] = [grantedBy(identityRouters), grantedBy(serviceRouters)]
  return {
    key: `${ofIdentities.policyIds} ${ofServices.policyIds}`,
    identities: ofIdentities.granted,
    services: ofServices.granted,
  }
}

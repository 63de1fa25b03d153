import { addAll, type Bitset, emptySet } from './bitset.js'
import type { Relation } from './relation.js'
import type { State } from './state.js'

/** What a router may know: what edge router policies and service edge router policies grant it. */
export interface RouterScope {
  readonly identities: Bitset
  readonly services: Bitset
}

/** The policies that select the router. None for an unknown router. */
export function policiesOfRouter({ right }: Relation, routerId: string): string[] {
  const number = right.population.numberOf(routerId)
  if (number === undefined) return []
  return [...right.open, ...right.selecting(number)].map(({ policyId }) => policyId).sort()
}

/** Routers with equal keys may know the same, in one state. */
export const scopeKey = ({ identityRouters, serviceRouters }: State, routerId: string): string =>
  `${policiesOfRouter(identityRouters, routerId)} ${policiesOfRouter(serviceRouters, routerId)}`

export function routerScope({ identityRouters, serviceRouters }: State, routerId: string): RouterScope {
  const grantedBy = (relation: Relation): Bitset => {
    const granted = emptySet()
    for (const policyId of policiesOfRouter(relation, routerId))
      addAll(granted, relation.left.membersOf(policyId))
    return granted
  }
  return { identities: grantedBy(identityRouters), services: grantedBy(serviceRouters) }
}

import { addAll, type Bitset, emptySet, forEach, isEmpty, union } from './bitset.js'
import type { Relation } from './relation.js'
import type { State } from './state.js'

/** The identities that a change concerns, as numbers that are valid until the next change. */
export interface Effect {
  /** Their service-updates time is the time of this change. */
  readonly updated: Bitset
  /** Their list of services may differ; contains `updated`. */
  readonly viewed: Bitset
  /** Other policies may grant their services, or other routers carry them; contains `viewed`. */
  readonly granted: Bitset
}

export function effect(updated: Bitset, viewed: Bitset = emptySet(), granted: Bitset = emptySet()): Effect {
  const allViewed = union(updated, viewed)
  return {
    updated,
    viewed: allViewed,
    granted: isEmpty(granted) ? allViewed : union(allViewed, granted),
  }
}

/** The grants of these identities may be different, and nothing that their lists show. */
export const grantEffect = (granted: Bitset): Effect => effect(emptySet(), emptySet(), granted)

export const noEffect = (): Effect => effect(emptySet())

export const accesses = ({ dial, bind }: State): readonly Relation[] => [dial, bind]

/** The identities that may dial or bind one of these services. */
export function audienceOf(state: State, services: Bitset): Bitset {
  const audience = emptySet()
  if (isEmpty(services)) return audience
  for (const { left, right } of accesses(state)) {
    const policies = new Set(right.open)
    forEach(services, (service) => {
      for (const selector of right.selecting(service)) policies.add(selector)
    })
    for (const { policyId } of policies) addAll(audience, left.membersOf(policyId))
  }
  return audience
}

/** While no posture check exists, lists do not say which policies grant a service. */
export const policiesAreShown = ({ checks }: State): boolean => !isEmpty(checks.present)

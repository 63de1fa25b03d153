import { addAll, type Bitset, emptySet, forEach, isEmpty, union } from './bitset.js'
import type { Relation } from './relation.js'
import type { State } from './state.js'

/** The identities that a change concerns, as numbers that are valid until the next change. */
export interface Effect {
  /** Their service-updates time is the time of this change. */
  readonly updated: Bitset
  /** Their list of services may look different; contains `updated`. */
  readonly viewed: Bitset
}

export const effect = (updated: Bitset, viewed: Bitset = emptySet()): Effect => ({
  updated,
  viewed: union(updated, viewed),
})

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

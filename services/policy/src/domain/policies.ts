import type { Semantic } from '@overlay/model'
import { addAll, type Bitset, distinction, emptySet, isEmpty, isSame, union } from './bitset.js'
import { accesses, audienceOf, type Effect, effect, noEffect, policiesAreShown } from './effect.js'
import { linksOfPolicy, regranted } from './gain.js'
import type { Relation } from './relation.js'
import type { State } from './state.js'

export type AccessType = 'Dial' | 'Bind'

export interface ServicePolicy {
  readonly id: string
  readonly type: AccessType
  readonly semantic: Semantic
  readonly identityRoles: readonly string[]
  readonly serviceRoles: readonly string[]
  readonly postureCheckRoles: readonly string[]
}

/** Links identities, or services, with edge routers. */
export interface RouterPolicy {
  readonly id: string
  readonly semantic: Semantic
  readonly roles: readonly string[]
  readonly edgeRouterRoles: readonly string[]
}

export function putServicePolicy(state: State, policy: ServicePolicy): Effect {
  const { id, type, semantic, identityRoles, serviceRoles, postureCheckRoles } = policy
  return changed(state, id, () => {
    const [granted, other] = type === 'Dial' ? [state.dial, state.bind] : [state.bind, state.dial]
    other.remove(id)
    granted.put(id, identityRoles, serviceRoles, semantic)
    state.required.put(id, postureCheckRoles, semantic)
  })
}

export function removeServicePolicy(state: State, id: string): Effect {
  return changed(state, id, () => {
    for (const granted of accesses(state)) granted.remove(id)
    state.required.remove(id)
  })
}

/** Compares what the policy links before and after. Sets of a policy are replaced, so the old ones stay as they were. */
function changed(state: State, id: string, change: () => void): Effect {
  const linked = () => accesses(state).map((granted) => ({ granted, links: linksOfPolicy(granted, id) }))
  const before = linked()
  const checksBefore = state.required.membersOf(id)
  change()
  const after = linked()
  const checksAfter = state.required.membersOf(id)

  const updated = emptySet()
  for (const [at, { granted, links }] of before.entries()) {
    addAll(updated, regranted(granted, id, links, after[at]?.links ?? links))
  }
  const lefts = [...before, ...after].map(({ links }) => links.left).reduce(union)
  const rights = (side: typeof before): Bitset => side.map(({ links }) => links.right).reduce(union)
  addAll(
    updated,
    audienceOf(state, differentlyGuarded(checksBefore, checksAfter, rights(before), rights(after))),
  )
  return effect(updated, policiesAreShown(state) ? lefts : emptySet())
}

/** The services of which this policy asks other posture checks than before. */
function differentlyGuarded(before: Bitset, after: Bitset, services: Bitset, servicesAfter: Bitset): Bitset {
  const guarded = isEmpty(before) ? emptySet() : services
  const guardedAfter = isEmpty(after) ? emptySet() : servicesAfter
  return isSame(before, after) ? distinction(guarded, guardedAfter) : union(guarded, guardedAfter)
}

/** Creates, replaces and deletes the router policies of one relation. */
export const routerPolicies = (relationOf: (state: State) => Relation) => ({
  put(state: State, { id, roles, edgeRouterRoles, semantic }: RouterPolicy): Effect {
    relationOf(state).put(id, roles, edgeRouterRoles, semantic)
    return noEffect()
  },
  remove(state: State, id: string): Effect {
    relationOf(state).remove(id)
    return noEffect()
  },
})

import { addAll, type Bitset, distinction, emptySet, isEmpty, isSame, union } from './bitset.js'
import { accesses, audienceOf, type Effect, effect, grantEffect, policiesAreShown } from './effect.js'
import { linksOfPolicy, regranted } from './regranted.js'
import type { Relation } from './relation.js'
import type { RouterPolicy, ServicePolicy } from './rows.js'
import type { State } from './state.js'
import { touch } from './touched.js'

export function putServicePolicy(state: State, policy: ServicePolicy): Effect {
  const { id, type, semantic, identityRoles, serviceRoles, postureCheckRoles } = policy
  return changed(state, id, () => {
    const isNew = accesses(state).every(({ left }) => !left.get(id))
    state.touches.row('service-policies', id, isNew ? touch.created : touch.written)
    const [granted, other] = type === 'Dial' ? [state.dial, state.bind] : [state.bind, state.dial]
    other.remove(id)
    granted.put(id, identityRoles, serviceRoles, semantic)
    state.required.put(id, postureCheckRoles, semantic)
  })
}

export function removeServicePolicy(state: State, id: string): Effect {
  return changed(state, id, () => {
    state.touches.row('service-policies', id, touch.removed)
    for (const granted of accesses(state)) granted.remove(id)
    state.required.remove(id)
  })
}

/**
 * Compares what the policy links before and after. Sets of a policy are replaced, so the old ones stay as they were.
 * A policy that links what it linked before, by the same checks, grants what it granted.
 */
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
  const isUnchanged =
    isSame(checksBefore, checksAfter) &&
    before.every(({ links: { left, right } }, at) => {
      const now = after[at]?.links
      return now !== undefined && isSame(left, now.left) && isSame(right, now.right)
    })
  return effect(updated, policiesAreShown(state) ? lefts : emptySet(), isUnchanged ? emptySet() : lefts)
}

/** The services of which this policy asks other posture checks than before. */
function differentlyGuarded(before: Bitset, after: Bitset, services: Bitset, servicesAfter: Bitset): Bitset {
  const guarded = isEmpty(before) ? emptySet() : services
  const guardedAfter = isEmpty(after) ? emptySet() : servicesAfter
  return isSame(before, after) ? distinction(guarded, guardedAfter) : union(guarded, guardedAfter)
}

/**
 * Creates, replaces and deletes the router policies of one relation. `usersOf`: the identities that the left entities
 * of a policy concern. Routers have a change log of their own, which may be behind: all of them may be concerned, also
 * where the policy selects the same routers as before.
 */
export const routerPolicies = (
  relationOf: (state: State) => Relation,
  usersOf: (state: State, lefts: Bitset) => Bitset,
) => {
  const changed = (state: State, id: string, change: (relation: Relation) => void): Effect => {
    const relation = relationOf(state)
    const before = relation.left.membersOf(id)
    change(relation)
    return grantEffect(usersOf(state, union(before, relation.left.membersOf(id))))
  }
  return {
    put: (state: State, { id, roles, edgeRouterRoles, semantic }: RouterPolicy): Effect =>
      changed(state, id, (relation) => relation.put(id, roles, edgeRouterRoles, semantic)),
    remove: (state: State, id: string): Effect => changed(state, id, (relation) => relation.remove(id)),
  }
}

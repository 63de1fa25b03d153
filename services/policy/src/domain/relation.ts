import type { Semantic } from '@overlay/model'
import { addAll, type Bitset, emptySet, isEmpty } from './bitset.js'
import type { Population } from './population.js'
import { type RoleIndex, roleIndex, type Selector } from './role-index.js'

/** What one kind of policy links: left entities with right ones. No pair is ever stored. */
export interface Relation {
  readonly left: RoleIndex
  readonly right: RoleIndex
  put(policyId: string, left: readonly string[], right: readonly string[], semantic: Semantic): void
  remove(policyId: string): void
  /** The right entities that a left one is linked with, by all policies together. */
  reach(left: number): Bitset
  reachesAny(left: number): boolean
  linked(left: number, right: number): boolean
  /** The policies that link the two. */
  linking(left: number, right: number): readonly string[]
}

export function relation(lefts: Population, rights: Population): Relation {
  const left = roleIndex(lefts)
  const right = roleIndex(rights)

  /** The policies that link the two, until `visit` returns true. Walks the shorter of the two lists. */
  const walk = (l: number, r: number, visit: (policyId: string) => boolean): boolean => {
    const ofLeft = left.open.size + left.selecting(l).length
    const ofRight = right.open.size + right.selecting(r).length
    const isNearLeft = ofLeft <= ofRight
    const [near, far] = isNearLeft ? [left, right] : [right, left]
    const [number, other] = isNearLeft ? [l, r] : [r, l]
    for (const { policyId } of near.selecting(number)) {
      if (far.selects(policyId, other) && visit(policyId)) return true
    }
    for (const { policyId } of near.open) if (far.selects(policyId, other) && visit(policyId)) return true
    return false
  }

  return {
    left,
    right,
    put(policyId, lefts, rights, semantic) {
      left.put(policyId, lefts, semantic)
      right.put(policyId, rights, semantic)
    },
    remove(policyId) {
      left.remove(policyId)
      right.remove(policyId)
    },
    reach(l) {
      const result = emptySet()
      for (const { policyId } of left.open) addAll(result, right.membersOf(policyId))
      for (const { policyId } of left.selecting(l)) addAll(result, right.membersOf(policyId))
      return result
    },
    reachesAny(l) {
      const some = ({ policyId }: Selector): boolean => !isEmpty(right.membersOf(policyId))
      return left.selecting(l).some(some) || [...left.open].some(some)
    },
    linking(l, r) {
      const policyIds: string[] = []
      walk(l, r, (policyId) => {
        policyIds.push(policyId)
        return false
      })
      return policyIds
    },
    linked: (l, r) => walk(l, r, () => true),
  }
}

import type { Semantic } from '@overlay/model'
import { addAll, type Bitset, emptySet, isEmpty } from './bitset.js'
import type { Population } from './population.js'
import { openRoleIndex, type RoleListener, type Selector } from './role-index.js'

/** What one kind of policy links: left entities with right ones. No pair is ever stored. */
export function openRelation(
  lefts: Population,
  rights: Population,
  listeners: { readonly left?: RoleListener; readonly right?: RoleListener } = {},
) {
  const left = openRoleIndex(lefts, listeners.left)
  const right = openRoleIndex(rights, listeners.right)

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
    put(policyId: string, lefts: readonly string[], rights: readonly string[], semantic: Semantic): void {
      left.put(policyId, lefts, semantic)
      right.put(policyId, rights, semantic)
    },
    remove(policyId: string): void {
      left.remove(policyId)
      right.remove(policyId)
    },
    /** The right entities that a left one is linked with, by all policies together. */
    reach(l: number): Bitset {
      const result = emptySet()
      for (const { policyId } of left.open) addAll(result, right.membersOf(policyId))
      for (const { policyId } of left.selecting(l)) addAll(result, right.membersOf(policyId))
      return result
    },
    reachesAny(l: number): boolean {
      const some = ({ policyId }: Selector): boolean => !isEmpty(right.membersOf(policyId))
      return left.selecting(l).some(some) || [...left.open].some(some)
    },
    /** The policies that link the two. */
    linking(l: number, r: number): readonly string[] {
      const policyIds: string[] = []
      walk(l, r, (policyId) => {
        policyIds.push(policyId)
        return false
      })
      return policyIds
    },
    linked: (l: number, r: number): boolean => walk(l, r, () => true),
  }
}

export type Relation = ReturnType<typeof openRelation>

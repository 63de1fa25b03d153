import type { Semantic } from '@overlay/model'
import { addAll, type Bitset, emptySet } from './bitset.js'
import type { Population } from './population.js'
import { type RoleIndex, roleIndex, type Selector } from './role-index.js'

/** What one kind of policy links: left entities with right ones. No pair is ever stored. */
export interface Relation {
  readonly left: RoleIndex
  readonly right: RoleIndex
  has(policyId: string): boolean
  put(policyId: string, left: readonly string[], right: readonly string[], semantic: Semantic): void
  remove(policyId: string): void
  /** The right entities that a left one is linked with, by all policies together. */
  reach(left: number): Bitset
  reached(right: number): Bitset
  linked(left: number, right: number): boolean
  /** The policies that link the two. */
  linking(left: number, right: number): Iterable<string>
}

export function relation(lefts: Population, rights: Population): Relation {
  const left = roleIndex(lefts)
  const right = roleIndex(rights)

  const across = (from: RoleIndex, to: RoleIndex, number: number): Bitset => {
    const result = emptySet()
    for (const { policyId } of from.open) addAll(result, to.membersOf(policyId))
    for (const { policyId } of from.selecting(number)) addAll(result, to.membersOf(policyId))
    return result
  }

  /** Walks the shorter of the two lists of policies. */
  function* linking(l: number, r: number): Iterable<string> {
    const ofLeft = left.open.size + left.selecting(l).length
    const ofRight = right.open.size + right.selecting(r).length
    const [near, number, far, other] = ofLeft <= ofRight ? [left, l, right, r] : [right, r, left, l]
    for (const { policyId } of candidates(near, number)) if (far.selects(policyId, other)) yield policyId
  }

  return {
    left,
    right,
    has: (policyId) => left.get(policyId) !== undefined,
    put(policyId, lefts, rights, semantic) {
      left.put(policyId, lefts, semantic)
      right.put(policyId, rights, semantic)
    },
    remove(policyId) {
      left.remove(policyId)
      right.remove(policyId)
    },
    reach: (l) => across(left, right, l),
    reached: (r) => across(right, left, r),
    linking,
    linked(l, r) {
      for (const _ of linking(l, r)) return true
      return false
    },
  }
}

function* candidates(index: RoleIndex, number: number): Iterable<Selector> {
  yield* index.open
  yield* index.selecting(number)
}

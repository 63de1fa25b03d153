import {
  add,
  type Bitset,
  difference,
  distinction,
  emptySet,
  forEach,
  intersection,
  isEmpty,
  isSubset,
} from './bitset.js'
import type { Relation } from './relation.js'

/** What one policy links: every left entity with every right one. */
export interface Links {
  readonly left: Bitset
  readonly right: Bitset
}

export const linksOf = ({ left, right }: Relation, policyId: string): Links => ({
  left: left.membersOf(policyId),
  right: right.membersOf(policyId),
})

/**
 * The left entities whose reach differs when this policy's links go from one state to the other, the other
 * policies being as they are: what another policy links too is neither gained nor lost.
 */
export function regranted(relation: Relation, policyId: string, before: Links, after: Links): Bitset {
  const result = emptySet()
  const consider = (lefts: Bitset, rights: Bitset): void => {
    const rest = withoutOpen(relation, policyId, rights)
    if (isEmpty(rest)) return
    const covers = new Map<string, boolean>()
    forEach(lefts, (left) => {
      if (!isCovered(relation, policyId, left, rest, covers)) add(result, left)
    })
  }
  consider(difference(before.left, after.left), before.right)
  consider(difference(after.left, before.left), after.right)
  consider(intersection(before.left, after.left), distinction(before.right, after.right))
  return result
}

/** What nobody has already by a policy for everybody. */
function withoutOpen({ left, right }: Relation, except: string, rights: Bitset): Bitset {
  let rest = rights
  for (const { policyId } of left.open) {
    if (policyId !== except) rest = difference(rest, right.membersOf(policyId))
  }
  return rest
}

/** True when the entity's other policies link it with all of these. */
function isCovered(
  { left, right }: Relation,
  except: string,
  number: number,
  rights: Bitset,
  covers: Map<string, boolean>,
): boolean {
  const others = left.selecting(number).filter(({ policyId }) => policyId !== except)
  for (const { policyId } of others) {
    let whole = covers.get(policyId) // entities share policies: each is compared once
    if (whole === undefined) {
      whole = isSubset(rights, right.membersOf(policyId))
      covers.set(policyId, whole)
    }
    if (whole) return true
  }
  if (others.length < 2) return false
  let rest = rights
  for (const { policyId } of others) rest = difference(rest, right.membersOf(policyId))
  return isEmpty(rest)
}

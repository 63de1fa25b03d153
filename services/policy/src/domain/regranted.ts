import {
  add,
  addAll,
  type Bitset,
  difference,
  distinction,
  emptySet,
  forEach,
  intersection,
  isCovered,
  isEmpty,
  numbersOf,
  sizeOf,
} from './bitset.js'
import type { Relation } from './relation.js'
import type { Selector } from './role-index.js'

/** What one policy links: every left entity with every right one. */
export interface Links {
  readonly left: Bitset
  readonly right: Bitset
}

export const linksOfPolicy = ({ left, right }: Relation, policyId: string): Links => ({
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
    const isWide = sizeOf(rest) * lefts.chunks.length <= sizeOf(lefts)
    addAll(result, (isWide ? lackingByRights : lackingByLefts)(relation, policyId, lefts, rest))
  }
  consider(difference(before.left, after.left), before.right)
  consider(difference(after.left, before.left), after.right)
  consider(intersection(before.left, after.left), distinction(before.right, after.right))
  return result
}

/** Without what policies for `#all` grant already. */
function withoutOpen({ left, right }: Relation, except: string, rights: Bitset): Bitset {
  let rest = rights
  for (const { policyId } of left.open) {
    if (policyId !== except) rest = difference(rest, right.membersOf(policyId))
  }
  return rest
}

/** Those of `lefts` that the other policies, alone or together, do not link with all of these rights. */
type Lacking = (relation: Relation, except: string, lefts: Bitset, rights: Bitset) => Bitset

const lackingByLefts: Lacking = (relation, except, lefts, rights) => {
  const lacking = emptySet()
  forEach(lefts, (left) => {
    if (!isGranted(relation, except, left, rights)) add(lacking, left)
  })
  return lacking
}

/** Handles all left entities at once, so that their number, and that of their policies, hardly matters. */
const lackingByRights: Lacking = (relation, except, lefts, rights) => {
  const { open, selecting } = relation.right
  const groupOf = groupsByRights(relation)
  const seen = new Set<string>()
  let linked = lefts
  for (const number of numbersOf(rights)) {
    const others = [...open, ...selecting(number)].filter(({ policyId }) => policyId !== except)
    const groups = [...new Set(others.map(groupOf))].sort((a, b) => a.number - b.number)
    const key = groups.map(({ number }) => number).join()
    if (seen.has(key)) continue // another right entity had the same policies
    seen.add(key)
    const sets = groups.map(({ lefts }) => lefts)
    if (isCovered(linked, sets)) continue
    const ofOthers = emptySet()
    for (const set of sets) addAll(ofOthers, set)
    linked = intersection(linked, ofOthers)
    if (isEmpty(linked)) break
  }
  return difference(lefts, linked)
}

/** Policies with the same role list on the right, and the left entities of all of them. */
interface Group {
  readonly number: number
  readonly lefts: Bitset
}

/**
 * Often hundreds of policies link a group of the left side each with the same right entities. They count as one, whose
 * left entities are united once. A group is complete when all policies of one of its right entities have been asked for.
 */
function groupsByRights({ left }: Relation): (right: Selector) => Group {
  const byList = new Map<string, Group>()
  const byPolicy = new Map<string, Group>()
  return ({ policyId, list, semantic }) => {
    const known = byPolicy.get(policyId)
    if (known) return known
    const text = JSON.stringify([semantic, list])
    const group = byList.get(text) ?? { number: byList.size, lefts: emptySet() }
    byList.set(text, group)
    byPolicy.set(policyId, group)
    addAll(group.lefts, left.membersOf(policyId))
    return group
  }
}

/** True when the entity's other policies, alone or together, link it with all of these. */
function isGranted({ left, right }: Relation, except: string, number: number, rights: Bitset): boolean {
  const granted: Bitset[] = []
  for (const { policyId } of left.selecting(number)) {
    if (policyId !== except) granted.push(right.membersOf(policyId))
  }
  return granted.length > 0 && isCovered(rights, granted)
}

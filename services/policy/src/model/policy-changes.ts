import {
  addAll,
  type Bitset,
  difference,
  emptySet,
  intersection,
  isEmpty,
  meets,
  numbersIn,
  remove,
  union,
} from '../domain/bitset.js'
import { accesses } from '../domain/effect.js'
import type { Relation } from '../domain/relation.js'
import type { RouterScope } from '../domain/router-scope.js'
import type { State } from '../domain/state.js'
import type { Flips, Touched } from '../domain/touched.js'
import { checksForRouters } from './model-events.js'
import { collect, isMember, type Moved, type MovedIdentities } from './moved.js'

interface PolicyChange {
  readonly id: string
  /** The router learns the policy itself. */
  readonly isSent: boolean
  readonly isDropped: boolean
  readonly services: Links
  readonly checks: Links
  readonly identities: {
    readonly added: Bitset
    readonly removed: Bitset
    readonly gone: readonly string[]
  }
}

interface Links {
  readonly added: readonly string[]
  readonly removed: readonly string[]
}

export function policyChanges(
  state: State,
  scope: RouterScope,
  services: Moved,
  identities: MovedIdentities,
  touched: Touched,
): PolicyChange[] {
  const movedOf = policiesOfMoved(state, services, identities)
  const candidates = new Set([
    ...touched.rows['service-policies'].keys(),
    ...touched.services.keys(),
    ...touched.checks.keys(),
    ...touched.members.keys(),
    ...movedOf.services.keys(),
    ...movedOf.identities,
  ])
  const known = union(scope.identities, identities.moved)
  return [...candidates].flatMap((id) => {
    const members = relationOf(state, id)?.left.membersOf(id) ?? emptySet()
    const granted = servicesOf(state, id)[0] ?? emptySet()
    const links = serviceLinks(state, scope, services, touched, id, movedOf.services.get(id) ?? [])
    const hasPolicy = meets(granted, scope.services)
    if (!links.had && !hasPolicy) return []
    const isDropped = !hasPolicy
    const isNew = !links.had
    const checks = checkLinks(state, touched.checks, id, isNew, isDropped)

    const changed = emptySet()
    const gone = new Set<string>()
    const ofPolicy = touched.members.get(id)
    if (ofPolicy) collect(state, ofPolicy, changed, gone, touched)
    // schemas may be applied in another order here than where the router was before
    if (touched.rows['service-policies'].has(id)) for (const one of identities.gone) gone.add(one)
    addAll(changed, isNew || isDropped ? members : intersection(identities.moved, members))
    const added = isDropped ? emptySet() : intersection(intersection(changed, members), scope.identities)
    const change = {
      id,
      isSent: hasPolicy && (isNew || touched.rows['service-policies'].has(id)),
      isDropped,
      services: links,
      checks,
      identities: {
        added,
        removed: isNew ? emptySet() : difference(intersection(changed, known), added),
        gone: isNew ? [] : [...gone].filter((one) => identities.gone.has(one)),
      },
    }
    return isDropped || change.isSent || hasLinks(change) ? [change] : []
  })
}

const hasLinks = ({ services, checks, identities }: PolicyChange): boolean =>
  [services, checks].some(({ added, removed }) => added.length + removed.length > 0) ||
  identities.gone.length > 0 ||
  !isEmpty(identities.added) ||
  !isEmpty(identities.removed)

/** The policies of what has moved: with the services that have, by policy, and with identities. */
function policiesOfMoved(state: State, services: Moved, { moved }: MovedIdentities) {
  const ofServices = new Map<string, string[]>()
  const ofIdentities = new Set<string>()
  for (const { left, right } of accesses(state)) {
    for (const id of [...services.entered, ...services.left]) {
      const number = state.services.numberOf(id)
      if (number === undefined) continue
      for (const { policyId } of [...right.open, ...right.selecting(number)]) {
        const list = ofServices.get(policyId)
        if (list) list.push(id)
        else ofServices.set(policyId, [id])
      }
    }
    if (isEmpty(moved)) continue
    for (const { policyId } of left.open) ofIdentities.add(policyId)
    for (const number of numbersIn(moved))
      for (const { policyId } of left.selecting(number)) ofIdentities.add(policyId)
  }
  return { services: ofServices, identities: ofIdentities }
}

/** How the services of a policy that the router knows differ from those that it knew. */
function serviceLinks(
  state: State,
  scope: RouterScope,
  { entered, left }: Moved,
  touched: Touched,
  policyId: string,
  moved: readonly string[],
): Links & { readonly had: boolean } {
  const flips = touched.services.get(policyId)
  const granted = servicesOf(state, policyId)[0] ?? emptySet()
  const untouched = intersection(granted, scope.services)
  const [added, removed]: [string[], string[]] = [[], []]
  let had = false
  for (const id of new Set([...(flips?.keys() ?? []), ...moved])) {
    const number = state.services.numberOf(id)
    const isGranted = isMember(granted, number)
    const isIn = isMember(scope.services, number)
    const wasIn = left.has(id) || (isIn && !entered.has(id))
    const hadLink = wasIn && (flips?.get(id) ?? isGranted)
    const hasLink = isIn && isGranted
    had ||= hadLink
    if (hasLink && !hadLink) added.push(id)
    if (hadLink && !hasLink) removed.push(id)
    if (number !== undefined) remove(untouched, number)
  }
  return { added, removed, had: had || !isEmpty(untouched) }
}

function checkLinks(
  state: State,
  touched: Flips,
  policyId: string,
  isNew: boolean,
  isDropped: boolean,
): Links {
  const now = checksForRouters(state, state.checks.idsOf(state.required.membersOf(policyId)))
  const flips = touched.get(policyId)
  if (isNew) return { added: now, removed: [] }
  const isNow = new Set(now)
  const former = checksForRouters(state, formerIn(flips, isNow))
  const before = [...now.filter((id) => flips?.get(id) ?? true), ...former]
  if (isDropped) return { added: [], removed: before }
  const wasBefore = new Set(before)
  return {
    added: now.filter((id) => !wasBefore.has(id)),
    removed: before.filter((id) => !isNow.has(id)),
  }
}

const formerIn = (flips: ReadonlyMap<string, boolean> | undefined, now: ReadonlySet<string>): string[] =>
  [...(flips ?? [])].flatMap(([id, was]) => (was && !now.has(id) ? [id] : []))

/** The services of a policy; none: it does not exist. */
export function servicesOf(state: State, policyId: string): Bitset[] {
  const relation = relationOf(state, policyId)
  return relation ? [relation.right.membersOf(policyId)] : []
}

const relationOf = (state: State, policyId: string): Relation | undefined =>
  accesses(state).find(({ left }) => left.get(policyId))

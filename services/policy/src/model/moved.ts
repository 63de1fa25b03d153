import { add, addAll, type Bitset, emptySet, has, intersection } from '../domain/bitset.js'
import { policiesOfRouter, type RouterScope } from '../domain/router-scope.js'
import type { State } from '../domain/state.js'
import { type Touched, type TouchedIdentities, touch } from '../domain/touched.js'

export interface Moved {
  /** By id: those that the router may know now, and might not before. */
  readonly entered: ReadonlySet<string>
  readonly left: ReadonlySet<string>
}

/** The services that came to the router's scope, or left it. Exact. */
export function movedServices(state: State, routerId: string, scope: RouterScope, touched: Touched): Moved {
  const { services, serviceRouters } = state
  const router = serviceRouters.right
  const routerNumber = state.routers.numberOf(routerId)
  const wasOfRouter = (policyId: string): boolean =>
    touched.serviceRouters.get(policyId)?.get(routerId) ??
    (routerNumber !== undefined && router.selects(policyId, routerNumber))
  const wasService = (policyId: string, id: string): boolean => {
    const flipped = touched.scopeServices.get(policyId)?.get(id)
    if (flipped !== undefined) return flipped
    const number = services.numberOf(id)
    return number !== undefined && serviceRouters.left.selects(policyId, number)
  }
  const changed = [...touched.serviceRouters].flatMap(([policyId, routers]) =>
    routers.has(routerId) ? [policyId] : [],
  )
  const relevant = [...new Set([...policiesOfRouter(serviceRouters, routerId), ...changed])]
  const candidates = new Set(relevant.flatMap((id) => [...(touched.scopeServices.get(id)?.keys() ?? [])]))
  for (const policyId of changed)
    for (const id of services.idsOf(serviceRouters.left.membersOf(policyId))) candidates.add(id)

  const granting = relevant.filter(wasOfRouter)
  const [entered, left] = [new Set<string>(), new Set<string>()]
  for (const id of candidates) {
    const had = granting.some((policyId) => wasService(policyId, id))
    const isIn = isMember(scope.services, services.numberOf(id))
    if (isIn && !had) entered.add(id)
    if (!isIn && had) left.add(id)
  }
  return { entered, left }
}

export interface MovedIdentities {
  /** Those that may have come to the router's scope, or left it. */
  readonly moved: Bitset
  /** Ids of deleted ones that may have been in it. */
  readonly gone: ReadonlySet<string>
}

export function movedIdentities(state: State, routerId: string, touched: Touched): MovedIdentities {
  const { identities, identityRouters } = state
  const moved = emptySet()
  const gone = new Set<string>()
  const relevant = new Set(policiesOfRouter(identityRouters, routerId))
  for (const [policyId, { routers }] of touched.scopes) if (routers.has(routerId)) relevant.add(policyId)
  for (const policyId of relevant) {
    const scope = touched.scopes.get(policyId)
    if (!scope) continue
    collect(state, scope.identities, moved, gone, touched)
    if (!scope.routers.has(routerId)) continue
    collect(state, scope.ofRouters, moved, gone, touched)
    addAll(moved, identityRouters.left.membersOf(policyId))
  }
  return { moved: intersection(moved, identities.present), gone }
}

/** Adds touched identities to one of two sets. A number of a deleted one does not say whose it was. */
export function collect(
  { identities }: State,
  { ids, many }: TouchedIdentities,
  numbers: Bitset,
  gone: Set<string>,
  touched: Touched,
): void {
  for (const id of ids) {
    const number = identities.numberOf(id)
    if (number === undefined) gone.add(id)
    else add(numbers, number)
  }
  if (!many) return
  addAll(numbers, intersection(many, identities.present))
  for (const [id, how] of touched.rows.identities)
    if ((how & touch.removed) !== 0 && identities.numberOf(id) === undefined) gone.add(id)
}

/** The identities whose fields the router has to learn. */
export function identitiesToSend(
  state: State,
  scope: RouterScope,
  services: Moved,
  { moved }: MovedIdentities,
  touched: Touched,
): Bitset {
  const sent = intersection(moved, scope.identities)
  const send = (id: string): void => {
    const number = state.identities.numberOf(id)
    if (number !== undefined && has(scope.identities, number)) add(sent, number)
  }
  for (const id of touched.rows.identities.keys()) send(id)
  for (const service of [...services.entered, ...services.left]) {
    for (const { identityId } of state.serviceOverrides.get(service) ?? []) send(identityId)
    for (const id of state.serviceSettings.get(service) ?? []) send(id)
  }
  return sent
}

export const isMember = (set: Bitset, number: number | undefined): boolean =>
  number !== undefined && has(set, number)

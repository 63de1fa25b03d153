import type { ModelEvent } from '@overlay/channel'
import {
  add,
  addAll,
  type Bitset,
  difference,
  emptySet,
  has,
  intersection,
  isEmpty,
  meets,
  numbersIn,
  remove,
  sizeOf,
  union,
} from '../domain/bitset.js'
import { accesses } from '../domain/effect.js'
import { requiring } from '../domain/entity-mutators.js'
import type { Relation } from '../domain/relation.js'
import { policiesOfRouter, type RouterScope, routerScope } from '../domain/router-scope.js'
import type { State } from '../domain/state.js'
import { type Flips, type Touched, type TouchedIdentities, touch } from '../domain/touched.js'
import { FEW_IDENTITIES, MOST_IDENTITIES } from '../limits.js'
import type { Events } from './full-state.js'
import type { ModelSource } from './model-events.js'
import * as model from './model-events.js'

/** Brings a router from where `touched` begins to the moment of the call. `null`: nothing has changed for it. */
export type Changes = Events | null | 'too much'

/**
 * What a router has to learn after these changes: the current values of what they touched in its scope. Services, posture
 * checks, and their links with policies are compared with what the router had, exactly; the rest may come again.
 */
export function changesOf(source: ModelSource, routerId: string, touched: Touched): Changes {
  if (touched.rows['edge-routers'].has(routerId)) return 'too much'
  const { state } = source
  const scope = routerScope(state, routerId)
  const services = movedServices(state, routerId, scope, touched)
  const identities = movedIdentities(state, routerId, touched)
  const sent = identitiesToSend(state, scope, services, identities, touched)
  const left = difference(identities.moved, scope.identities)
  const most = Math.min(MOST_IDENTITIES, Math.max(FEW_IDENTITIES, sizeOf(scope.identities) / 2))
  if (sizeOf(sent) + sizeOf(left) > most) return 'too much'

  const policies = policyChanges(state, scope, services, identities, touched)
  const configs = configChanges(source, scope, services, identities, touched)
  const isConfig = (id: string): boolean => model.isConfig(source, id)
  const isInScope = (id: string): boolean => isMember(scope.services, state.services.numberOf(id))

  const before: ModelEvent[] = []
  const deletions: ModelEvent[] = []
  for (const id of touched.rows['config-types'].keys()) {
    const type = model.configTypeOf(source, id)
    if (type) before.push(model.created(type))
  }
  for (const id of configs.sent) {
    const config = model.configOf(source, id)
    if (config) before.push(model.created(config))
  }

  const entities: ModelEvent[] = []
  const sentServices = new Set(services.entered)
  for (const id of touched.rows.services.keys()) if (isInScope(id)) sentServices.add(id)
  for (const id of sentServices) entities.push(model.updated(model.serviceOf(source, id, isConfig)))
  const isRequired = (id: string): boolean => {
    const number = state.checks.numberOf(id)
    return (
      number !== undefined &&
      requiring(state, number).some((policyId) =>
        servicesOf(state, policyId).some((s) => meets(s, scope.services)),
      )
    )
  }
  // whether the router had a link to it is not known
  const isUnsure = ([id, how]: readonly [string, number]): boolean =>
    (how & touch.withheld) !== 0 &&
    (isRequired(id) || [...touched.checks.values()].some((flips) => flips.has(id)))
  if ([...touched.rows['posture-checks']].some(isUnsure)) return 'too much'
  // a check goes before any link that names it, from the same moment: routers die of a link to a check that they lack
  const checks = new Set(policies.flatMap(({ checks }) => checks.added))
  for (const id of touched.rows['posture-checks'].keys()) if (isRequired(id)) checks.add(id)
  for (const id of checks) entities.push(model.updated(model.checkOf(source, id)))

  for (const { id, isDropped } of policies) if (isDropped) deletions.push(model.deletedPolicy(id))
  for (const id of identities.gone) deletions.push(model.deletedIdentity(id))
  const leftIds = state.identities.idsOf(left)
  for (const id of leftIds) deletions.push(model.deletedIdentity(id))
  for (const id of services.left) deletions.push(model.deletedService(id))
  for (const id of configs.dropped) deletions.push(model.deletedConfig(id))
  for (const id of touched.rows['config-types'].keys())
    if (!state.typeNames.has(id)) deletions.push(model.deletedConfigType(id))
  for (const id of new Set(policies.flatMap(({ checks }) => checks.removed)))
    if (!isRequired(id)) deletions.push(model.deletedCheck(id))

  const isNothing =
    before.length + entities.length + policies.length + deletions.length === 0 && isEmpty(sent)
  if (isNothing) return null

  const tracked = state.identities.track()
  addAll(tracked, state.identities.present)
  const changed = policies.map((policy) => ({
    ...policy,
    event: policy.isSent ? model.created(model.policyOf(source, policy.id)) : undefined,
  }))
  // configs that come later are not in this set, so what names configs is from the same moment as the configs
  const captured = new Map<string, ModelEvent>()
  const identityEvent = (id: string, number: number): ModelEvent => {
    const content = model.identityOf(source, id, isInScope, isConfig)
    return (has(identities.moved, number) ? model.created : model.updated)(content)
  }
  if (state.identityOverrides.size > 0) {
    for (const number of numbersIn(sent)) {
      const id = state.identities.idOf(number)
      if (state.identityOverrides.has(id)) captured.set(id, identityEvent(id, number))
    }
  }
  const idsIn = (numbers: Bitset): Iterable<string> => model.idsIn(source, numbers, tracked)

  function* events(): Events {
    try {
      yield* before
      for (const number of numbersIn(sent)) {
        if (!has(tracked, number)) continue
        const id = state.identities.idOf(number)
        yield captured.get(id) ?? identityEvent(id, number)
      }
      yield* entities
      for (const { id, event, services, checks, identities } of changed) {
        if (event) yield event
        yield* model.memberEvents(id, 'SERVICE', services.added, true)
        yield* model.memberEvents(id, 'POSTURE_CHECK', checks.added, true)
        yield* model.memberEvents(id, 'IDENTITY', idsIn(identities.added), true)
      }
      for (const { id, isDropped, services, checks, identities } of changed) {
        yield* model.memberEvents(id, 'IDENTITY', idsIn(identities.removed), false)
        yield* model.memberEvents(id, 'IDENTITY', identities.gone, false)
        if (isDropped) continue
        yield* model.memberEvents(id, 'SERVICE', services.removed, false)
        yield* model.memberEvents(id, 'POSTURE_CHECK', checks.removed, false)
      }
      yield* deletions
    } finally {
      state.identities.untrack(tracked)
    }
  }
  return events()
}

/**
 * Whether a router might count something twice, or lose it, because it is not known whether it has the changes that are
 * unsure.
 * @param touched all that it may lack
 */
export function isAmbiguous(state: State, routerId: string, touched: Touched, unsure: Touched): boolean {
  const scope = routerScope(state, routerId)
  const moved = new Set([...touched.scopeServices.values()].flatMap((flips) => [...flips.keys()]))
  const mayBeInScope = (id: string): boolean => {
    const number = state.services.numberOf(id)
    return number === undefined || has(scope.services, number) || moved.has(id)
  }
  const mayHavePolicy = (policyId: string): boolean => {
    const services = servicesOf(state, policyId)
    const isIn = services.length === 0 || services.some((set) => meets(set, scope.services))
    return isIn || moved.size > 0 || touched.services.has(policyId)
  }
  const grants = policiesOfRouter(state.serviceRouters, routerId)
  return (
    [...touched.serviceRouters.values()].some((routers) => routers.has(routerId)) ||
    grants.some((policyId) => unsure.scopeServices.has(policyId)) ||
    [...unsure.rows['posture-checks'].values()].some((how) => (how & touch.withheld) !== 0) ||
    [...unsure.services.values()].some((flips) => [...flips.keys()].some(mayBeInScope)) ||
    [...unsure.checks.keys()].some(mayHavePolicy)
  )
}

const isMember = (set: Bitset, number: number | undefined): boolean =>
  number !== undefined && has(set, number)

/** The services of a policy; none: it does not exist. */
function servicesOf(state: State, policyId: string): Bitset[] {
  const relation = relationOf(state, policyId)
  return relation ? [relation.right.membersOf(policyId)] : []
}

const relationOf = (state: State, policyId: string): Relation | undefined =>
  accesses(state).find(({ left }) => left.get(policyId))

interface Moved {
  /** By id: those that the router may know now, and might not before. */
  readonly entered: ReadonlySet<string>
  readonly left: ReadonlySet<string>
}

/** The services that came to the router's scope, or left it. Exact. */
function movedServices(state: State, routerId: string, scope: RouterScope, touched: Touched): Moved {
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

interface MovedIdentities {
  /** Those that may have come to the router's scope, or left it. */
  readonly moved: Bitset
  /** Ids of deleted ones that may have been in it. */
  readonly gone: ReadonlySet<string>
}

function movedIdentities(state: State, routerId: string, touched: Touched): MovedIdentities {
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
function collect(
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
function identitiesToSend(
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

function policyChanges(
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
  const now = model.checksForRouters(state, state.checks.idsOf(state.required.membersOf(policyId)))
  const flips = touched.get(policyId)
  if (isNew) return { added: now, removed: [] }
  const isNow = new Set(now)
  const former = model.checksForRouters(state, formerIn(flips, isNow))
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

function configChanges(
  source: ModelSource,
  scope: RouterScope,
  services: Moved,
  { moved, gone }: MovedIdentities,
  touched: Touched,
) {
  const { state } = source
  const candidates = new Map(touched.rows.configs)
  const link = (id: string): void => void candidates.set(id, (candidates.get(id) ?? 0) | touch.linked)
  for (const service of [...services.entered, ...services.left]) {
    for (const config of state.contents.get(service)?.configIds ?? []) link(config)
    for (const { configId } of state.serviceOverrides.get(service) ?? []) link(configId)
  }
  if (state.overrides.size > 0) {
    const ids = [...state.identities.idsOf(moved), ...gone]
    for (const id of ids) for (const { configId } of state.identityOverrides.get(id) ?? []) link(configId)
  }
  const inServices = (id: string): boolean => isMember(scope.services, state.services.numberOf(id))
  const inIdentities = (id: string): boolean => isMember(scope.identities, state.identities.numberOf(id))
  const isUsed = (id: string): boolean =>
    [...(state.configServices.get(id) ?? [])].some(inServices) ||
    [...(state.configOverrides.get(id) ?? [])].some(
      ({ identityId, serviceId }) => inServices(serviceId) && inIdentities(identityId),
    )
  const [sent, dropped]: [string[], string[]] = [[], []]
  for (const [id, how] of candidates) {
    if (model.isConfig(source, id) && isUsed(id)) sent.push(id)
    else if ((how & (touch.linked | touch.removed)) !== 0) dropped.push(id)
  }
  return { sent, dropped }
}

import type { ModelEvent } from '@overlay/channel'
import { addAll, type Bitset, difference, has, isEmpty, meets, numbersIn, sizeOf } from '../domain/bitset.js'
import { requiring } from '../domain/entity-mutators.js'
import { policiesOfRouter, type RouterScope, routerScope } from '../domain/router-scope.js'
import type { State } from '../domain/state.js'
import { type Touched, touch } from '../domain/touched.js'
import { FEW_IDENTITIES, MOST_IDENTITIES } from '../limits.js'
import type { Events } from './full-state.js'
import type { ModelSource } from './model-events.js'
import * as model from './model-events.js'
import {
  identitiesToSend,
  isMember,
  type Moved,
  type MovedIdentities,
  movedIdentities,
  movedServices,
} from './moved.js'
import { policyChanges, servicesOf } from './policy-changes.js'

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

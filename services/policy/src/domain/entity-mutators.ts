import { add, addAll, type Bitset, emptySet, has, isSame, remove, setOf, union } from './bitset.js'
import {
  accesses,
  audienceOf,
  type Effect,
  effect,
  grantEffect,
  noEffect,
  policiesAreShown,
} from './effect.js'
import { addTo, takeFrom } from './multimap.js'
import { isForRouters } from './posture/mfa-check.js'
import type { Check } from './posture/posture-check.js'
import type { Relation } from './relation.js'
import type { Identity, IdentityPosture, IdentitySettings, PostureCheck, Router, Service } from './rows.js'
import type { State } from './state.js'
import { touch } from './touched.js'

export function putIdentity(state: State, { id, attributes, isAdmin, settings }: Identity): Effect {
  const { number, changed, isNew } = state.identities.put(id, attributes)
  if (setSettings(state, id, settings) || isNew)
    state.touches.row('identities', id, isNew ? touch.created : touch.written)
  const self = setOf([number])
  const adminChanged = isAdmin !== has(state.admins, number)
  if (isAdmin) add(state.admins, number)
  else remove(state.admins, number)
  if (!isNew && changed.length === 0) return effect(emptySet(), adminChanged ? self : emptySet())

  const before = isNew ? [] : accesses(state).map(({ reach }) => reach(number))
  const placed = accesses(state).map(({ left }) => left.entityPlaced(number, changed, isNew))
  state.identityRouters.left.entityPlaced(number, changed, isNew)
  const policiesChanged = placed.includes(true)
  const differs = ({ reach, reachesAny }: Relation, at: number): boolean => {
    const had = before[at]
    return had ? !isSame(had, reach(number)) : reachesAny(number)
  }
  const isUpdated = policiesChanged && accesses(state).some(differs)
  const isViewed = isNew || adminChanged || (policiesChanged && policiesAreShown(state))
  return effect(isUpdated ? self : emptySet(), isViewed ? self : emptySet(), self)
}

/** Without effect: the identity has no list any more. */
export function removeIdentity(state: State, id: string): Effect {
  const number = state.identities.numberOf(id)
  if (number === undefined) return noEffect()
  for (const { left } of [...accesses(state), state.identityRouters]) left.entityRemoved(number)
  remove(state.admins, number)
  setSettings(state, id, undefined)
  state.touches.row('identities', id, touch.removed)
  for (const { configId } of state.identityOverrides.get(id) ?? [])
    state.touches.row('configs', configId, touch.linked)
  state.identities.remove(number)
  return noEffect()
}

/** True: they are different from before. */
function setSettings(state: State, id: string, settings: IdentitySettings | undefined): boolean {
  const before = state.settings.get(id)
  if (JSON.stringify(before) === JSON.stringify(settings)) return false
  for (const service of servicesIn(before)) takeFrom(state.serviceSettings, service, id)
  for (const service of servicesIn(settings)) addTo(state.serviceSettings, service, id)
  if (settings) state.settings.set(id, settings)
  else state.settings.delete(id)
  return true
}

const servicesIn = (settings: IdentitySettings | undefined): string[] =>
  settings ? [...Object.keys(settings.serviceCosts), ...Object.keys(settings.servicePrecedences)] : []

/** Every write of a service concerns all identities that may use it, whatever it changed. */
export function putService(state: State, service: Service): Effect {
  const { id, attributes, configIds, encryptionRequired, revision } = service
  const current = state.services.numberOf(id)
  const before = current === undefined ? emptySet() : audienceOf(state, setOf([current]))
  const { number, changed, isNew } = state.services.put(id, attributes)
  for (const { right } of accesses(state)) right.entityPlaced(number, changed, isNew)
  state.serviceRouters.left.entityPlaced(number, changed, isNew)
  const formerConfigs = state.contents.get(id)?.configIds ?? []
  for (const config of formerConfigs) takeFrom(state.configServices, config, id)
  for (const config of configIds) addTo(state.configServices, config, id)
  for (const config of new Set([...formerConfigs, ...configIds]))
    if (formerConfigs.includes(config) !== configIds.includes(config))
      state.touches.row('configs', config, touch.linked)
  state.touches.row('services', id, isNew ? touch.created : touch.written)
  state.contents.set(id, { revision, configIds, encryptionRequired })
  state.serviceTexts.delete(id)
  return effect(union(before, audienceOf(state, setOf([number]))), state.admins)
}

export function removeService(state: State, id: string): Effect {
  const number = state.services.numberOf(id)
  if (number === undefined) return noEffect()
  const before = audienceOf(state, setOf([number]))
  for (const { right } of accesses(state)) right.entityRemoved(number)
  state.serviceRouters.left.entityRemoved(number)
  state.services.remove(number)
  state.touches.row('services', id, touch.removed)
  for (const config of state.contents.get(id)?.configIds ?? []) {
    takeFrom(state.configServices, config, id)
    state.touches.row('configs', config, touch.linked)
  }
  state.contents.delete(id)
  state.serviceTexts.delete(id)
  return effect(before, state.admins)
}

/** Routers count when a session is created; no list shows them. */
export function putRouter(state: State, { id, attributes }: Router): Effect {
  const current = state.routers.numberOf(id)
  const before = current === undefined ? emptySet() : usersOf(state, current)
  const { number, changed, isNew } = state.routers.put(id, attributes)
  if (isNew) state.touches.row('edge-routers', id, touch.created)
  if (!isNew && changed.length === 0) return noEffect()
  for (const { right } of routing(state)) right.entityPlaced(number, changed, isNew)
  return grantEffect(union(before, usersOf(state, number)))
}

export function removeRouter(state: State, id: string): Effect {
  const number = state.routers.numberOf(id)
  if (number === undefined) return noEffect()
  const before = usersOf(state, number)
  for (const { right } of routing(state)) right.entityRemoved(number)
  state.routers.remove(number)
  state.touches.row('edge-routers', id, touch.removed)
  return grantEffect(before)
}

/** The identities that may connect through the router. */
function usersOf({ identityRouters: { left, right } }: State, router: number): Bitset {
  const users = emptySet()
  for (const { policyId } of [...right.open, ...right.selecting(router)])
    addAll(users, left.membersOf(policyId))
  return users
}

const routing = ({ identityRouters, serviceRouters }: State): readonly Relation[] => [
  identityRouters,
  serviceRouters,
]

export function putPostureCheck(state: State, { id, attributes, revision, check }: PostureCheck): Effect {
  const { checks, required, checkContents } = state
  const current = checks.numberOf(id)
  const isFirst = !policiesAreShown(state)
  const before = current === undefined ? [] : requiring(state, current)
  const { number, changed, isNew } = checks.put(id, attributes)
  const wasKept = keptFlag(state, id)
  required.entityPlaced(number, changed, isNew)
  checkContents.set(id, { revision, check })
  const how = isNew ? touch.created : touch.written
  state.touches.row('posture-checks', id, how | wasKept | keptFlag(state, id))
  const audience = audienceOf(state, servicesOf(state, [...before, ...requiring(state, number)]))
  return effect(audience, isFirst ? state.identities.present : state.admins)
}

const keptFlag = ({ checkContents }: State, id: string): number =>
  isForRouters(checkContents.get(id)?.check) ? 0 : touch.withheld

/** No endpoint passes the check, and every policy that required it still does. */
export function putUnknownCheck(state: State, id: string): Effect {
  const current = state.checkContents.get(id)?.check
  const check = { ...current, id, typeId: 'unknown' } as Check
  return putPostureCheck(state, { id, attributes: current?.roleAttributes ?? [], revision: 'unknown', check })
}

export function removePostureCheck(state: State, id: string): Effect {
  const { checks, required, checkContents } = state
  const number = checks.numberOf(id)
  if (number === undefined) return noEffect()
  const audience = audienceOf(state, servicesOf(state, requiring(state, number)))
  required.entityRemoved(number)
  checks.remove(number)
  state.touches.row('posture-checks', id, touch.removed | keptFlag(state, id))
  checkContents.delete(id)
  return effect(audience, policiesAreShown(state) ? state.admins : state.identities.present)
}

/** wire: every posture response changes `lastChangeAt` of the identity, also one that repeats the last. */
export function putPostureData(state: State, { id, data, lapsedAtMs }: IdentityPosture): Effect {
  state.postureData.set(id, data)
  if (lapsedAtMs > 0) state.lapsedAtMs.set(id, lapsedAtMs)
  else state.lapsedAtMs.delete(id)
  return changedFor(state, id)
}

export function removePostureData(state: State, id: string): Effect {
  state.lapsedAtMs.delete(id)
  return state.postureData.delete(id) ? changedFor(state, id) : noEffect()
}

function changedFor({ identities }: State, id: string): Effect {
  const number = identities.numberOf(id)
  return number === undefined ? noEffect() : effect(setOf([number]))
}

/** The policies that ask for a posture check. */
export const requiring = ({ required }: State, check: number): string[] =>
  [...required.open, ...required.selecting(check)].map(({ policyId }) => policyId)

function servicesOf(state: State, policyIds: readonly string[]): Bitset {
  return accesses(state)
    .flatMap(({ right }) => policyIds.map((id) => right.membersOf(id)))
    .reduce(union, emptySet())
}

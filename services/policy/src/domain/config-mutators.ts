import { add, emptySet, union } from './bitset.js'
import { accesses, audienceOf, type Effect, effect, noEffect } from './effect.js'
import { addTo, takeFrom } from './multimap.js'
import type { Config, ConfigType, Override } from './rows.js'
import type { State } from './state.js'
import { touch } from './touched.js'

export function putConfig(state: State, { id, ...config }: Config): Effect {
  const before = state.configs.get(id)
  state.configs.set(id, config)
  const isRetyped = before?.typeId !== config.typeId
  state.touches.row('configs', id, before ? touch.written | (isRetyped ? touch.linked : 0) : touch.created)
  if (isRetyped) touchUsers(state, id)
  return readersOf(state, [id])
}

export function removeConfig(state: State, id: string): Effect {
  if (state.configs.delete(id)) {
    state.touches.row('configs', id, touch.removed)
    touchUsers(state, id)
  }
  return readersOf(state, [id])
}

/** Services and identities name only configs that exist. */
function touchUsers(state: State, configId: string): void {
  for (const id of state.configServices.get(configId) ?? []) state.touches.row('services', id, touch.linked)
  for (const { identityId } of state.configOverrides.get(configId) ?? [])
    state.touches.row('identities', identityId, touch.linked)
}

/** Lists show a type's name and nothing else of it. */
export function putConfigType(state: State, { id, name }: ConfigType): Effect {
  const before = state.typeNames.get(id)
  if (before === name) return noEffect()
  state.typeNames.set(id, name)
  touchType(state, id, before === undefined ? touch.created : touch.written)
  return readersOf(state, configsOfType(state, id))
}

export function removeConfigType(state: State, id: string): Effect {
  if (!state.typeNames.delete(id)) return noEffect()
  touchType(state, id, touch.removed)
  return readersOf(state, configsOfType(state, id))
}

function touchType(state: State, id: string, how: number): void {
  state.touches.row('config-types', id, how)
  if (how === touch.written) return
  for (const config of configsOfType(state, id)) {
    state.touches.row('configs', config, touch.linked)
    touchUsers(state, config)
  }
}

const configsOfType = ({ configs }: State, id: string): string[] =>
  [...configs].filter(([, { typeId }]) => typeId === id).map(([config]) => config)

export function putOverride(state: State, override: Override): Effect {
  forget(state, override.id)
  state.overrides.set(override.id, override)
  addTo(state.identityOverrides, override.identityId, override)
  addTo(state.configOverrides, override.configId, override)
  addTo(state.serviceOverrides, override.serviceId, override)
  touchOverride(state, override)
  return effectOf(state, [override])
}

export function removeOverride(state: State, id: string): Effect {
  const override = forget(state, id)
  return override ? effectOf(state, [override]) : noEffect()
}

function forget(state: State, id: string): Override | undefined {
  const override = state.overrides.get(id)
  if (!override) return undefined
  state.overrides.delete(id)
  takeFrom(state.identityOverrides, override.identityId, override)
  takeFrom(state.configOverrides, override.configId, override)
  takeFrom(state.serviceOverrides, override.serviceId, override)
  touchOverride(state, override)
  return override
}

function touchOverride({ touches }: State, { identityId, configId }: Override): void {
  touches.row('identities', identityId, touch.linked)
  touches.row('configs', configId, touch.linked)
}

/** The identities whose services show one of these configs, as the service's or as their own. */
function readersOf(state: State, configIds: readonly string[]): Effect {
  const services = emptySet()
  for (const id of configIds.flatMap((config) => [...(state.configServices.get(config) ?? [])])) {
    state.serviceTexts.delete(id)
    const number = state.services.numberOf(id)
    if (number !== undefined) add(services, number)
  }
  const own = effectOf(
    state,
    configIds.flatMap((config) => [...(state.configOverrides.get(config) ?? [])]),
  )
  return effect(union(audienceOf(state, services), own.updated), state.admins)
}

/** An override concerns one identity, if it may use the service. */
function effectOf(state: State, overrides: readonly Override[]): Effect {
  const updated = emptySet()
  for (const { identityId, serviceId } of overrides) {
    const identity = state.identities.numberOf(identityId)
    const service = state.services.numberOf(serviceId)
    if (identity === undefined || service === undefined) continue
    if (accesses(state).some((granted) => granted.linked(identity, service))) add(updated, identity)
  }
  return effect(updated, state.admins)
}

import { add, emptySet, union } from './bitset.js'
import { accesses, audienceOf, type Effect, effect, noEffect } from './effect.js'
import { addTo, takeFrom } from './multimap.js'
import type { Config, ConfigType, Override } from './rows.js'
import type { State } from './state.js'

export function putConfig(state: State, { id, typeId, revision }: Config): Effect {
  state.configs.set(id, { typeId, revision })
  return readersOf(state, [id])
}

export function removeConfig(state: State, id: string): Effect {
  state.configs.delete(id)
  return readersOf(state, [id])
}

/** Lists show a type's name and nothing else of it. */
export function putConfigType(state: State, { id, name }: ConfigType): Effect {
  if (state.typeNames.get(id) === name) return noEffect()
  state.typeNames.set(id, name)
  return readersOf(state, configsOfType(state, id))
}

export function removeConfigType(state: State, id: string): Effect {
  return state.typeNames.delete(id) ? readersOf(state, configsOfType(state, id)) : noEffect()
}

const configsOfType = ({ configs }: State, id: string): string[] =>
  [...configs].filter(([, { typeId }]) => typeId === id).map(([config]) => config)

export function putOverride(state: State, override: Override): Effect {
  forget(state, override.id)
  state.overrides.set(override.id, override)
  addTo(state.identityOverrides, override.identityId, override)
  addTo(state.configOverrides, override.configId, override)
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
  return override
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

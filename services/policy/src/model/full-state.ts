import type { ModelEvent } from '@overlay/channel'
import { addAll, has, intersection, isEmpty, numbersIn } from '../domain/bitset.js'
import { accesses } from '../domain/effect.js'
import { routerScope } from '../domain/router-scope.js'
import {
  checkOf,
  checksForRouters,
  configOf,
  configTypeOf,
  created,
  identityOf,
  idsIn,
  type ModelSource,
  memberEvents,
  policyOf,
  serviceOf,
} from './model-events.js'

/** The events of a state or of a change set, in their order. Undefined: a step without one. */
export type Events = Generator<ModelEvent | undefined, void>

/**
 * All that a router may know, while memory changes. What is exact is from the moment of the call: services, posture checks,
 * and their links with policies. Identities and their links are as they are when their turn comes; what differs from the
 * moment of the call was touched after it.
 */
export function fullState(source: ModelSource, routerId: string): Events {
  const { state } = source
  const scope = routerScope(state, routerId)
  const types = new Map<string, ModelEvent>()
  for (const id of state.typeNames.keys()) {
    const type = configTypeOf(source, id)
    if (type) types.set(id, created(type))
  }
  const configs = new Set<string>()
  const services = new Map<number, string>()
  for (const number of numbersIn(scope.services)) {
    const id = state.services.idOf(number)
    services.set(number, id)
    for (const config of state.contents.get(id)?.configIds ?? []) configs.add(config)
  }
  const sent = new Map<string, ModelEvent>()
  const addConfig = (id: string): ModelEvent | undefined => {
    const content = sent.has(id) ? null : configOf(source, id)
    const typeId = content?.config?.typeId
    if (!content || !typeId || !types.has(typeId)) return undefined
    const event = created(content)
    sent.set(id, event)
    return event
  }
  for (const id of configs) addConfig(id)
  const isSent = (config: string): boolean => sent.has(config)
  const isInScope = (service: string): boolean =>
    services.get(state.services.numberOf(service) ?? -1) === service
  const serviceEvents = [...services.values()].map((id) => created(serviceOf(source, id, isSent)))
  const checks = new Set<string>()
  const policies = accesses(state).flatMap(({ right }) =>
    [...right.policyIds()].flatMap((id) => {
      const granted = intersection(right.membersOf(id), scope.services)
      if (isEmpty(granted)) return []
      const required = checksForRouters(state, state.checks.idsOf(state.required.membersOf(id)))
      for (const check of required) checks.add(check)
      const serviceIds = [...numbersIn(granted)].map((number) => services.get(number) ?? '')
      return [{ id, event: created(policyOf(source, id)), serviceIds, required }]
    }),
  )
  const checkEvents = [...checks].map((id) => created(checkOf(source, id)))
  const overrides = [...state.overrides.values()] // the map grows while it is read
  const identities = state.identities.track()
  addAll(identities, scope.identities)

  function* events(): Events {
    try {
      yield* types.values()
      yield* [...sent.values()]
      for (const { identityId, serviceId, configId } of overrides) {
        const number = state.identities.numberOf(identityId)
        const isUsed = number !== undefined && has(identities, number) && isInScope(serviceId)
        yield isUsed ? addConfig(configId) : undefined
      }
      for (const id of idsIn(source, identities, identities))
        yield created(identityOf(source, id, isInScope, isSent))
      yield* serviceEvents
      yield* checkEvents
      for (const { id, event, serviceIds, required } of policies) {
        yield event
        yield* memberEvents(id, 'SERVICE', serviceIds, true)
        yield* memberEvents(id, 'POSTURE_CHECK', required, true)
        for (const { left } of accesses(state)) {
          const members = intersection(left.membersOf(id), identities)
          yield* memberEvents(id, 'IDENTITY', idsIn(source, members, identities), true)
        }
      }
    } finally {
      state.identities.untrack(identities)
    }
  }
  return events()
}

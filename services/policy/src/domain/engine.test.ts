import { roleCaseEntities, roleCases } from '@overlay/model/testing'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import {
  checksAsked,
  demandsOf,
  emptyWorld,
  listOf,
  policiesLinking,
  routersBetween,
  routersFor,
  usable,
  type World,
} from '../../testing/naive-world.js'
import { type Step, stepEngine, steps, stepWorld } from '../../testing/steps.js'
import { contentKey } from './authorization/content-key.js'
import { emptyState, type State } from './state.js'
import {
  commonRouters,
  linkingPolicies,
  permissionsOf,
  requiredCheckIds,
  routersOfIdentities,
  visibleIds,
} from './state-queries.js'

test.each(roleCases)('$rule', ({ roles, semantic, selected }) => {
  const state = emptyState()
  const policy = { semantic, identityRoles: roles, serviceRoles: ['#all'], postureCheckRoles: [] }
  const all: Step[] = [
    { kind: 'service-policies', id: 'early', row: { id: 'early', type: 'Dial', ...policy } },
    ...roleCaseEntities.map(
      ({ id, roleAttributes }): Step => ({
        kind: 'identities',
        id,
        row: { id, attributes: roleAttributes, isAdmin: false },
      }),
    ),
    {
      kind: 'services',
      id: 's1',
      row: { id: 's1', attributes: [], configIds: [], encryptionRequired: false, revision: '' },
    },
    { kind: 'service-policies', id: 'late', row: { id: 'late', type: 'Bind', ...policy } },
  ]
  for (const step of all) stepEngine(state, step)
  for (const { id } of roleCaseEntities) {
    expect(permissionsOf(state, id, 's1')).toEqual(selected.includes(id) ? ['Bind', 'Dial'] : [])
  }
})

test('the engine answers as if it looked at every row, after any changes', () => {
  fc.assert(
    fc.property(steps, (sequence) => {
      const state = emptyState()
      const world = sequence.reduce((before, step) => {
        stepEngine(state, step)
        return stepWorld(before, step)
      }, emptyWorld)
      expect(answersOf(state, world)).toEqual(answersByRows(world))
    }),
    { numRuns: 200 },
  )
})

test('a change names exactly those whose service-updates time moves, and all whose list or grants differ', () => {
  fc.assert(
    fc.property(steps, (sequence) => {
      const state = emptyState()
      let world = emptyWorld
      for (const step of sequence) {
        const before = world
        const keys = keysOf(state, before)
        const [grants, routers] = [grantsOf(before), routersOf(before)]
        const { updated, viewed, granted } = stepEngine(state, step)
        world = stepWorld(before, step)
        expect(state.identities.idsOf(updated).sort()).toEqual(updatedByRows(before, world, step))
        const notified = new Set(state.identities.idsOf(viewed))
        const regranted = new Set(state.identities.idsOf(granted))
        const [grantsNow, routersNow] = [grantsOf(world), routersOf(world)]
        expect([...notified].filter((id) => !regranted.has(id))).toEqual([])
        for (const [id, identity] of world.identities) {
          const old = before.identities.get(id)
          const differs = !old || listOf(before, old) !== listOf(world, identity)
          expect([id, differs && !notified.has(id)]).toEqual([id, false])
          const isRegranted =
            old && (grants.get(id) !== grantsNow.get(id) || routers.get(id) !== routersNow.get(id))
          expect([id, isRegranted && !regranted.has(id)]).not.toEqual([id, true])
          if (old) expect([id, keys.get(id) !== keysOf(state, world).get(id)]).toEqual([id, differs])
        }
      }
    }),
    { numRuns: 60 },
  )
})

/** For each identity, in their order. */
function routerSets(state: State, ids: readonly string[]): (readonly string[] | undefined)[] {
  const { sets, setOf } = routersOfIdentities(state, ids)
  return setOf.map((index) => sets[index])
}

const pairsOf = ({ identities, services }: World) =>
  [...identities.values()].flatMap((identity) =>
    [...services.keys()].map((service) => ({ identity, service })),
  )

/** By identity: the routers that edge router policies grant it. */
const routersOf = (world: World): ReadonlyMap<string, string> =>
  new Map([...world.identities.keys()].map((id) => [id, routersFor(world, id).join()]))

function answersOf(state: State, world: World): unknown {
  return [
    pairsOf(world).map(({ identity: { id }, service }) => [
      permissionsOf(state, id, service),
      linkingPolicies(state, id, service)
        .map(({ policyId, type }) => [policyId, type, requiredCheckIds(state, policyId)])
        .sort(),
      commonRouters(state, id, service),
    ]),
    [...world.identities.values()].map(({ id, isAdmin }) => visibleIds(state, { identityId: id, isAdmin })),
    routerSets(state, [...world.identities.keys(), 'unknown']),
  ]
}

/** By identity: the policies and checks by which it may use each service, and the routers for it. */
const grantsOf = (world: World): ReadonlyMap<string, string> =>
  new Map(
    [...world.identities.keys()].map((id) => [
      id,
      JSON.stringify(
        usable(world, id).map((service) => [
          service,
          policiesLinking(world, id, service).map((policy) => [
            policy.id,
            policy.type,
            checksAsked(world, policy),
          ]),
          routersBetween(world, id, service),
        ]),
      ),
    ]),
  )

function answersByRows(world: World): unknown {
  return [
    pairsOf(world).map(({ identity: { id }, service }) => {
      const policies = policiesLinking(world, id, service)
      return [
        (['Bind', 'Dial'] as const).filter((type) => policies.some((policy) => policy.type === type)),
        policies.map((policy) => [policy.id, policy.type, checksAsked(world, policy)]).sort(),
        routersBetween(world, id, service),
      ]
    }),
    [...world.identities.values()].map(({ id, isAdmin }) =>
      isAdmin ? [...world.services.keys()].sort() : usable(world, id),
    ),
    [...[...world.identities.keys()].map((id) => routersFor(world, id)), []],
  ]
}

const keysOf = (state: State, { identities }: World) =>
  new Map(
    [...identities.values()].map(({ id, isAdmin }) => [id, contentKey(state, { identityId: id, isAdmin })]),
  )

/** The table of what moves the time: access gained or lost; a usable service written, shown or guarded by other checks. */
function updatedByRows(before: World, after: World, step: Step): string[] {
  const [services, pairs] = touchedBy(before, after, step)
  const isNews = step.row !== null || before[step.kind].has(step.id)
  return [...after.identities.keys()]
    .filter((id) => {
      const had = before.identities.has(id)
      const accessDiffers = (['Dial', 'Bind'] as const).some(
        (type) => String(had ? usable(before, id, type) : []) !== String(usable(after, id, type)),
      )
      if (step.kind === 'posture-data' && step.id === id && isNews) return true
      const touched = (service: string) => services.has(service) || pairs.has(`${id} ${service}`)
      return accessDiffers || (had && usable(before, id).some(touched)) || usable(after, id).some(touched)
    })
    .sort()
}

function touchedBy(before: World, after: World, { kind, id, row }: Step): [Set<string>, Set<string>] {
  const services = new Set<string>()
  const pairs = new Set<string>()
  const show = (isShown: (configId: string) => boolean) => {
    for (const service of after.services.values())
      if (service.configIds.some(isShown)) services.add(service.id)
    for (const o of after['service-configs'].values())
      if (isShown(o.configId)) pairs.add(`${o.identityId} ${o.serviceId}`)
  }
  switch (kind) {
    case 'services':
      services.add(id)
      break
    case 'configs':
      show((config) => config === id)
      break
    case 'config-types':
      if (before['config-types'].get(id)?.name !== row?.name)
        show((config) => after.configs.get(config)?.typeId === id)
      break
    case 'service-configs': {
      const override = row ?? before['service-configs'].get(id)
      if (override) pairs.add(`${override.identityId} ${override.serviceId}`)
      break
    }
    case 'posture-data':
      break // moves the time of its identity, whatever it uses
    case 'posture-checks':
    case 'service-policies': {
      const [asked, askedNow] = [demandsOf(before), demandsOf(after)]
      for (const service of after.services.keys()) {
        const [old, now] = [[...(asked.get(service) ?? [])].sort(), [...(askedNow.get(service) ?? [])].sort()]
        const written =
          kind === 'posture-checks' && [...old, ...now].some((demand) => demand.endsWith(` ${id}`))
        if (written || String(old) !== String(now)) services.add(service)
      }
    }
  }
  return [services, pairs]
}

import { generateKeyPairSync } from 'node:crypto'
import { expect, test } from 'vitest'
import { countsOf, differences } from '../testing/model-contents.js'
import { openStrictModel } from '../testing/strict-model.js'
import {
  type DataState,
  type DataStateChangeSet,
  DataState as DataStateMessage,
  ModelAction,
  ModelEvent,
  ModelPolicyMember,
  ModelPolicyType,
} from './index.js'

const event = (model: Partial<Record<keyof ModelEvent, unknown>>, action = ModelAction.CREATE): ModelEvent =>
  ModelEvent.fromPartial({ action, ...model } as never)
const remove = (model: Partial<Record<keyof ModelEvent, unknown>>): ModelEvent =>
  event(model, ModelAction.DELETE)
const link = (kind: keyof typeof ModelPolicyMember, id: string, add = true): ModelEvent =>
  event({
    servicePolicyChange: {
      policyId: 'p',
      relatedEntityIds: [id],
      relatedEntityType: ModelPolicyMember[kind],
      add,
    },
  })

const { publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
const data = publicKey.export({ format: 'der', type: 'spki' })
const key = event({ publicKey: { kid: 'k', data, usages: [0], format: 1 } })
const type = event({ configType: { id: 't', name: 'type' } })
const config = event({ config: { id: 'c', typeId: 't', name: 'config', dataJson: '{}' } })
const identity = event({ identity: { id: 'i', name: 'identity' } })
const service = event({ service: { id: 's', name: 'service', configs: ['c'] } })
const check = event({
  postureCheck: { id: 'x', name: 'check', typeId: 'MAC', mac: { macAddresses: ['00'] } },
})
const policy = event({ servicePolicy: { id: 'p', name: 'policy', policyType: ModelPolicyType.DIAL } })
const links = [link('SERVICE', 's'), link('POSTURE_CHECK', 'x'), link('IDENTITY', 'i')]
const everything = [type, config, identity, service, check, policy, ...links, key]

const stateOf = (events: ModelEvent[], endIndex = 10n, timelineId = 'timeline'): DataState => ({
  events,
  endIndex,
  timelineId,
})
const setOf = (changes: ModelEvent[], index = 11n, previousIndex = 10n): DataStateChangeSet => ({
  changes,
  index,
  previousIndex,
  isSynthetic: false,
})

/** A model with everything. */
function opened() {
  const violations: string[] = []
  const model = openStrictModel((violation) => violations.push(violation))
  model.replace(stateOf(everything))
  return { model, violations }
}

test('a full state in the right order, and changes that follow it, break no rule', () => {
  const { model, violations } = opened()
  expect(model.apply(setOf([]))).toBe('applied')
  const changes = [remove({ servicePolicy: { id: 'p' } }), remove({ service: { id: 's' } })]
  expect(model.apply(setOf([link('IDENTITY', 'i', false), ...changes], 20n, 11n))).toBe('applied')
  expect(violations).toEqual([])
  expect([model.index, model.timeline, countsOf(model.contents).get('service')]).toEqual([20n, 'timeline', 0])
})

test('contents that were encoded and decoded are equal, and each difference has its kind', () => {
  const { model, violations } = opened()
  const decoded = openStrictModel((violation) => violations.push(violation))
  decoded.replace(DataStateMessage.decode(DataStateMessage.encode(stateOf(everything)).finish()))
  expect(differences(model.contents, decoded.contents)).toEqual([])
  const changes = [
    event({ identity: { id: 'j' } }),
    link('SERVICE', 's', false),
    remove({ publicKey: { kid: 'k' } }),
  ]
  decoded.apply(setOf(changes))
  expect(
    differences(model.contents, decoded.contents).map(({ entityId, diffType }) => [entityId, diffType]),
  ).toEqual([
    ['j', 'added'],
    ['p', 'modified'],
    ['k', 'removed'],
  ])
  expect(violations).toEqual([])
})

test.each([
  ['a set that does not grow', setOf([], 10n, 9n), 'refused', 'change set 10 after 10'],
  ['a gap', setOf([], 12n, 11n), 'gap', 'a gap'],
  ['a set without a predecessor', setOf([], 12n, 0n), 'gap', 'a gap'],
  ['a synthetic change of a service', { ...setOf([service]), isSynthetic: true }, 'applied', 'synthetic'],
] as const)('%s is reported', (_what, set, outcome, violation) => {
  const { model, violations } = opened()
  expect(model.apply(set)).toBe(outcome)
  expect(violations).toEqual([expect.stringContaining(violation)])
})

test.each<[string, ModelEvent[], string]>([
  ['an unknown identity', [link('IDENTITY', 'j')], 'names j'],
  ['an unknown service', [link('SERVICE', 'other')], 'names other'],
  ['an unknown posture check', [link('POSTURE_CHECK', 'y')], 'the router dies'],
  [
    'a member of an unknown policy',
    [remove({ servicePolicy: { id: 'p' } }), link('IDENTITY', 'i')],
    'members of',
  ],
  ['a service that is added twice', [link('SERVICE', 's')], 'added twice'],
  ['a check that is removed twice', [...Array(2).fill(link('POSTURE_CHECK', 'x', false))], 'removed twice'],
  ['an unknown config of a service', [event({ service: { id: 's', configs: ['d'] } })], 'names d'],
  [
    'an unknown config of an identity',
    [event({ identity: { id: 'i', serviceConfigs: new Map([['s', { configs: new Map([['t', 'd']]) }]]) } })],
    'names d',
  ],
  ['a config of an unknown type', [event({ config: { id: 'c', typeId: 'u', dataJson: '{}' } })], 'names u'],
  ['a config in use that is deleted', [remove({ config: { id: 'c' } })], 'in use'],
  ['a check in use that is deleted', [remove({ postureCheck: { id: 'x' } })], 'in use'],
  [
    'two keys with one id',
    [event({ publicKey: { kid: 'k', data: data.subarray(1), usages: [0] } })],
    'two public keys',
  ],
  [
    'a policy that returns with its former members',
    [remove({ servicePolicy: { id: 'p' } }), policy],
    'still apply',
  ],
  ['a check without its values', [event({ postureCheck: { id: 'z', typeId: 'OS' } })], 'is no OS'],
])('%s is reported', (_what, changes, violation) => {
  const { model, violations } = opened()
  model.apply(setOf(changes))
  expect(violations).toContainEqual(expect.stringContaining(violation))
})

test('what a full state has twice or deletes is reported, and so is an index that goes back', () => {
  const { model, violations } = opened()
  model.replace(stateOf([identity, identity, remove({ service: { id: 's' } })], 9n))
  expect(violations).toHaveLength(3)
  model.replace(stateOf([], 5n, 'another'))
  expect(violations).toHaveLength(3)
})

test('changes before a full state are refused, and keys are not', () => {
  const violations: string[] = []
  const model = openStrictModel((violation) => violations.push(violation))
  expect(model.apply({ ...setOf([key]), isSynthetic: true })).toBe('applied')
  expect(violations).toEqual([])
  expect(model.apply(setOf([]))).toBe('refused')
  expect(violations).toHaveLength(1)
})

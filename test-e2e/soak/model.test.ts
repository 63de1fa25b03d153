import { expect, test } from 'vitest'
import { adopt, differences, emptyModel, forget, grants, overrideKey, visible } from './model.js'
import { randomOf } from './random.js'

function sample() {
  const model = emptyModel()
  model.identities.set('i1', { name: 'alice', attributes: ['staff'] })
  model.services.set('s1', { name: 'wiki', attributes: ['web'] })
  model.services.set('s2', { name: 'mail', attributes: [] })
  model.policies.set('p1', {
    name: 'dial',
    type: 'Dial',
    semantic: 'AllOf',
    identityRoles: ['#staff', '@i9'],
    serviceRoles: ['@s2', '#web'],
  })
  return model
}

test('a policy grants what both of its lists select', () => {
  const model = sample()
  expect(visible(model, 'i1')).toEqual(['s1', 's2'])
  expect(grants(model, 'i1', 's1', 'Bind')).toBe(false)
  expect(grants(model, 'i2', 's1')).toBe(false)
})

test('a deleted service leaves no role and no override', () => {
  const model = sample()
  model.overrides.set(overrideKey('i1', 's2'), 'c1')
  forget(model, 'services', 's2')
  expect(model.policies.get('p1')?.serviceRoles).toEqual(['#web'])
  expect(model.overrides.size).toBe(0)
})

test('lost rows, changed rows and rows that came back are differences', () => {
  const model = sample()
  const rows = {
    identities: [{ id: 'i1', name: 'alice', roleAttributes: ['guest'] }],
    services: [{ id: 's1', name: 'wiki', roleAttributes: ['web'] }],
    'service-policies': [],
  }
  expect(
    differences(model, { ...rows, identities: [...rows.identities, { id: 'i2', name: 'bob' }] }),
  ).toEqual([
    expect.stringContaining('identities i1: want'),
    expect.stringContaining('identities i2 (bob) was deleted'),
    expect.stringContaining('services s2 (mail) was acknowledged and is lost'),
    expect.stringContaining('service-policies p1 (dial) was acknowledged and is lost'),
  ])
  expect(differences(model, rows, new Set(['i1', 'mail', 'p1']))).toEqual([])
  adopt(model, rows)
  expect(differences(model, rows)).toEqual([])
})

test('a role that names a row whose deletion is unsure is no difference', () => {
  const rows = {
    identities: [{ id: 'i1', name: 'alice', roleAttributes: ['staff'] }],
    services: [{ id: 's1', name: 'wiki', roleAttributes: ['web'] }],
    'service-policies': [
      { id: 'p1', name: 'dial', identityRoles: ['#staff', '@i9'], serviceRoles: ['#web'] },
    ],
  }
  expect(differences(sample(), rows, new Set(['s2']))).toEqual([])
  expect(differences(sample(), rows, new Set(['mail']))).toEqual([expect.stringContaining('p1: want')])
})

test('a seed repeats its numbers, and each stream has its own', () => {
  const draw = (seed: number, stream: string) => {
    const random = randomOf(seed, stream)
    return Array.from({ length: 20 }, () => random.int(1000))
  }
  expect(draw(7, 'a')).toEqual(draw(7, 'a'))
  expect(draw(7, 'a')).not.toEqual(draw(7, 'b'))
  expect(draw(7, 'a')).not.toEqual(draw(8, 'a'))
})

import { expect, test } from 'vitest'
import { mutators } from './mutators.js'
import { emptyState } from './state.js'

const rolesOf = (ids: readonly string[]) => ids.map((id) => (id.startsWith('#') ? id : `@${id}`))

/** Who has a new service-updates time after each change. */
function network() {
  const state = emptyState()
  for (const id of ['alice', 'bob', 'carol'])
    mutators.identities.put(state, { id, attributes: [], isAdmin: false })
  for (const id of ['wiki', 'mail'])
    mutators.services.put(state, {
      id,
      attributes: [],
      configIds: [],
      encryptionRequired: false,
      revision: '',
    })
  const grant = (id: string, ...services: string[]) => grantTo(['alice'], id, services)
  const grantTo = (identities: readonly string[], id: string, services: readonly string[]) =>
    mutators['service-policies'].put(state, {
      id,
      type: 'Dial',
      semantic: 'AnyOf',
      identityRoles: rolesOf(identities),
      serviceRoles: rolesOf(services),
      postureCheckRoles: [],
    })
  return {
    grant: (...args: Parameters<typeof grant>) => state.identities.idsOf(grant(...args).updated),
    grantTo: (...args: Parameters<typeof grantTo>) => state.identities.idsOf(grantTo(...args).updated),
    revoke: (id: string) => state.identities.idsOf(mutators['service-policies'].remove(state, id).updated),
  }
}

test('a first policy changes access, and so does its end', () => {
  const { grant, revoke } = network()
  expect([grant('p', 'wiki'), revoke('p')]).toEqual([['alice'], ['alice']])
})

test('what another policy grants too is neither gained nor lost', () => {
  const { grant, revoke } = network()
  grant('p', 'wiki', 'mail')
  expect([grant('q', 'wiki'), revoke('q')]).toEqual([[], []])
})

test('what several other policies grant together is neither gained nor lost', () => {
  const { grant, revoke } = network()
  grant('p', 'wiki')
  grant('q', 'mail')
  expect([grant('r', 'wiki', 'mail'), revoke('r')]).toEqual([[], []])
  revoke('q')
  expect(grant('r', 'wiki', 'mail')).toEqual(['alice'])
})

test('of many identities, only those gain or lose access to whom no other policy grants all of it', () => {
  const { grantTo, revoke } = network()
  grantTo(['bob'], 'p', ['wiki'])
  grantTo(['carol'], 'q', ['#all'])
  const all = ['alice', 'bob', 'carol']
  expect([grantTo(all, 'r', ['wiki']), revoke('r')]).toEqual([['alice'], ['alice']])
  expect([grantTo(all, 's', ['wiki', 'mail']), revoke('s')]).toEqual([
    ['alice', 'bob'],
    ['alice', 'bob'],
  ])
  expect([grantTo(['#all'], 't', ['wiki']), grantTo(all, 'u', ['wiki'])]).toEqual([['alice'], []])
})

test('policies with the same role list and policies of single services grant together', () => {
  const { grantTo, revoke } = network()
  const all = ['alice', 'bob', 'carol']
  grantTo(['alice'], 'p', ['#all'])
  grantTo(['bob'], 'q', ['wiki', 'mail'])
  grantTo(['carol'], 'r', ['wiki'])
  expect(grantTo(all, 's', ['wiki', 'mail'])).toEqual(['carol'])
  grantTo(['carol'], 't', ['wiki', 'mail'])
  expect(revoke('s')).toEqual([])
  expect(grantTo(all, 's', ['wiki', 'mail'])).toEqual([])
})

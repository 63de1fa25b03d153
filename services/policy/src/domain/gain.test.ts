import { expect, test } from 'vitest'
import { mutators } from './mutators.js'
import { emptyState } from './state.js'

/** Who has a new service-updates time after each change. */
function network() {
  const state = emptyState()
  mutators.identities.put(state, { id: 'alice', attributes: [], isAdmin: false })
  for (const id of ['wiki', 'mail'])
    mutators.services.put(state, { id, attributes: [], configIds: [], revision: '' })
  const grant = (id: string, ...services: string[]) =>
    mutators['service-policies'].put(state, {
      id,
      type: 'Dial',
      semantic: 'AnyOf',
      identityRoles: ['@alice'],
      serviceRoles: services.map((service) => `@${service}`),
      postureCheckRoles: [],
    })
  return {
    grant: (...args: Parameters<typeof grant>) => state.identities.idsOf(grant(...args).updated),
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

import { expect, test } from 'vitest'
import { sampleCheck } from '../../../testing/sample-check.js'
import { putIdentity, putPostureCheck, putService } from '../entity-mutators.js'
import { putServicePolicy } from '../policy-mutators.js'
import type { AccessType } from '../rows.js'
import { emptyState } from '../state.js'
import { contentKey } from './content-key.js'

test('lists that differ only in the type of a policy have different keys', () => {
  const keyWith = (first: AccessType, second: AccessType): string => {
    const state = emptyState()
    putIdentity(state, { id: 'alice', attributes: [], isAdmin: false })
    putService(state, { id: 's', attributes: [], configIds: [], encryptionRequired: false, revision: '1' })
    putPostureCheck(state, { id: 'k1', attributes: [], revision: '1', check: sampleCheck })
    for (const [id, type] of [
      ['p1', first],
      ['p2', second],
    ] as const)
      putServicePolicy(state, {
        id,
        type,
        semantic: 'AnyOf',
        identityRoles: ['#all'],
        serviceRoles: ['#all'],
        postureCheckRoles: [],
      })
    return contentKey(state, { identityId: 'alice', isAdmin: false })
  }
  expect(keyWith('Dial', 'Bind')).not.toBe(keyWith('Bind', 'Dial'))
})

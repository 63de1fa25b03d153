import { expect, test } from 'vitest'
import { passes } from '../domain/posture/evaluate-check.js'
import { emptyState } from '../domain/state.js'
import { openEngineMemory } from './engine-memory.js'

const upto = { timeline: 't', number: 1 }
const change = (kind: string, id: string, row: object) => ({
  kind,
  id,
  json: Buffer.from(JSON.stringify(row)),
  atMs: 0,
  number: 1,
})

test('an unknown row gives no access: no endpoint passes the check, the identity does not exist', () => {
  const state = emptyState()
  const listener = { changed: () => undefined, applied: () => undefined, loading: () => undefined }
  const memory = openEngineMemory(state, ['identities', 'posture-checks'], listener)
  const check = change('posture-checks', 'c', { id: 'c', typeId: 'OS', roleAttributes: ['a'] })
  const identity = change('identities', 'i', { roleAttributes: ['a'], isAdmin: false })
  memory.apply([check, identity], upto)
  const before = state.checks.numberOf('c')
  memory.unknown?.(check, upto)
  memory.unknown?.(identity, upto)
  const content = state.checkContents.get('c')
  expect([state.checks.numberOf('c'), content?.check.roleAttributes]).toEqual([before, ['a']])
  const endpoint = { data: { processes: [], apiSessions: {} }, apiSessionId: '', nowMs: 0 }
  expect(content && passes(content.check, endpoint)).toBe(false)
  expect(state.identities.numberOf('i')).toBeUndefined()
})

import { expect, test } from 'vitest'
import { changeBy, conflictOf, type StoredTerminator } from './terminator-claim.js'

const stored: StoredTerminator = {
  id: 't',
  serviceId: 'wiki',
  routerId: 'r',
  binding: 'edge',
  hostId: 'alice',
  cost: 10,
  precedence: 'default',
  savedPrecedence: null,
  isOfAdministrator: false,
  sessionId: 's',
}

test.each([
  [{}, undefined],
  [{ cost: 11, precedence: 'failed', sessionId: 's2' }, undefined],
  [{ binding: 'tunnel', serviceId: 'blog' }, 'binding'],
  [{ serviceId: 'blog', routerId: 'r2' }, 'service'],
  [{ routerId: 'r2', hostId: 'bob' }, 'router'],
  [{ hostId: 'bob' }, 'identity'],
] as const)('a claim with %j conflicts with the stored terminator by %s', (claim, by) => {
  const text = by && `selected id conflicts with terminator for different ${by}`
  expect(conflictOf(stored, { ...stored, ...claim })).toBe(text)
})

test('a repeated claim changes nothing', () => {
  expect(changeBy(stored, stored)).toBeUndefined()
})

test.each([
  [{ cost: 11 }],
  [{ precedence: 'required' }],
  [{ sessionId: 's2' }],
  [{ sessionId: null }],
] as const)('a claim with %j changes that alone', (claim) => {
  const { id, cost, precedence, savedPrecedence, sessionId } = stored
  expect(changeBy(stored, { ...stored, ...claim })).toEqual({
    ...{ id, cost, precedence, savedPrecedence, sessionId },
    ...claim,
  })
})

test('a claim for a quiesced terminator changes the precedence to restore', () => {
  const quiesced = { ...stored, precedence: 'failed', savedPrecedence: 'default' } as const
  expect(changeBy(quiesced, stored)).toBeUndefined()
  expect(changeBy(quiesced, { ...stored, precedence: 'required' })).toMatchObject({
    precedence: 'failed',
    savedPrecedence: 'required',
  })
})

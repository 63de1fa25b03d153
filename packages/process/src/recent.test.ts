import { expect, test } from 'vitest'
import { isSlow, keepRefusal, keepSlow, openRecent, recentRefusals, recentSlowRequests } from './recent.js'

test.each([
  [0, []],
  [2, [1, 0]],
  [3, [2, 1, 0]],
  [4, [3, 2, 1]],
  [8, [7, 6, 5]],
])('of %i items, the newest three are kept', (count, expected) => {
  const recent = openRecent<number>(3)
  for (let item = 0; item < count; item++) recent.add(item)
  expect(recent.newestFirst()).toEqual(expected)
})

test('requests of half a second or more are slow, and kept', () => {
  expect([isSlow(0.499), isSlow(0.5)]).toEqual([false, true])
  keepSlow('GET /identities', '200', 0.5, 'r2')
  const expected = { operation: 'GET /identities', result: '200', durationMs: 500, requestId: 'r2' }
  expect(recentSlowRequests()[0]).toMatchObject(expected)
})

test('a refusal is kept with its fields, without the user name as typed and without control characters', () => {
  keepRefusal('login refused', {
    username: 'my password',
    reason: 'wrong password',
    sourceAddress: '10.0.0.1',
    identityName: 'al\u001b[31mice',
    subject: undefined,
    long: 'x'.repeat(1000),
  })
  const [{ facts = {}, ...refusal } = {}] = recentRefusals()
  expect(refusal).toMatchObject({
    message: 'login refused',
    reason: 'wrong password',
    sourceAddress: '10.0.0.1',
  })
  expect(Object.keys(facts)).toEqual(['identityName', 'long'])
  expect(facts.identityName).not.toContain('\u001b')
  expect(facts.long?.length).toBeLessThan(200)
})

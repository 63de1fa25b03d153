import { expect, test } from 'vitest'
import { FULL_MODEL_REPEAT_MS, MOST_SUBSCRIPTIONS, SUBSCRIPTIONS_WITHIN_MS } from '../limits.js'
import { openSubscriptionBudget } from './subscription-budget.js'

const never = new AbortController().signal

test('a router has two full states in a row, and then one when the time of the first is over', async () => {
  let now = 0
  const budget = openSubscriptionBudget({ now: () => now })
  await budget.turnOf('a', never)
  now = 1000
  await budget.turnOf('a', never)
  await budget.turnOf('b', never)
  const stop = new AbortController()
  const third = budget.turnOf('a', stop.signal)
  stop.abort()
  await expect(third).rejects.toThrow()
  now = FULL_MODEL_REPEAT_MS
  await budget.turnOf('a', never)
  const fourth = budget.turnOf('a', AbortSignal.abort())
  await expect(fourth).rejects.toThrow()
})

test('a router that has subscribed too often may do so again later', () => {
  let now = 0
  const { take } = openSubscriptionBudget({ now: () => now })
  for (let i = 0; i < MOST_SUBSCRIPTIONS; i++) expect(take('a')).toBe(true)
  expect([take('a'), take('b')]).toEqual([false, true])
  now = SUBSCRIPTIONS_WITHIN_MS
  expect(take('a')).toBe(true)
})

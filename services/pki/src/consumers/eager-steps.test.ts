import { expect, test } from 'vitest'
import { openAhead } from './eager-steps.js'

test('who asks while it is under way hears how it ended', async () => {
  const ahead = openAhead()
  let end = (_: boolean): void => undefined
  const doing = ahead.doing(
    'e1',
    () =>
      new Promise((resolve) => {
        end = resolve
      }),
  )
  const asked = ahead.hasDone('e1')
  end(true)
  expect([await asked, await doing, ahead.hasDone('e1')]).toEqual([true, true, true])
})

test.each([
  ['was left to others', async () => false],
  ['failed', () => Promise.reject(new Error('away'))],
])('what %s is not done', async (_, work) => {
  const ahead = openAhead()
  const doing = ahead.doing('e1', work).catch((err: Error) => err.message)
  expect(await ahead.hasDone('e1')).toBe(false)
  expect(['away', false]).toContain(await doing)
  expect(ahead.hasDone('e1')).toBe(false)
})

test('what was done long ago is forgotten', async () => {
  const ahead = openAhead()
  for (let i = 0; i <= 10_000; i++) await ahead.doing(String(i), async () => true)
  expect([ahead.hasDone('0'), ahead.hasDone('10000')]).toEqual([false, true])
})

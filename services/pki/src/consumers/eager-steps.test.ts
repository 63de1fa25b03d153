import { expect, test } from 'vitest'
import { openSteps } from './eager-steps.js'

test('a question while a step runs is answered with its outcome', async () => {
  const steps = openSteps()
  let end = (_: boolean): void => undefined
  const run = steps.run(
    'e1',
    () =>
      new Promise((resolve) => {
        end = resolve
      }),
  )
  const answer = steps.isDone('e1')
  end(true)
  expect([await answer, await run, steps.isDone('e1')]).toEqual([true, true, true])
})

test.each([
  ['was not taken', async () => false],
  ['failed', () => Promise.reject(new Error('away'))],
])('a step that %s is not done', async (_, work) => {
  const steps = openSteps()
  const run = steps.run('e1', work).catch((err: Error) => err.message)
  expect(await steps.isDone('e1')).toBe(false)
  expect(['away', false]).toContain(await run)
  expect(steps.isDone('e1')).toBe(false)
})

test('a step that was done long ago is forgotten', async () => {
  const steps = openSteps()
  for (let i = 0; i <= 10_000; i++) await steps.run(String(i), async () => true)
  expect([steps.isDone('0'), steps.isDone('10000')]).toEqual([false, true])
})

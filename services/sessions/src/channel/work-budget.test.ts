import { expect, test } from 'vitest'
import { openWorkBudget } from './work-budget.js'

/** A clock that moves when somebody waits for it. */
function startBudget() {
  let now = 0
  const pauses: number[] = []
  const budget = openWorkBudget({
    unitsPerSecond: 1000,
    burst: 100,
    now: () => now,
    async pause(ms) {
      pauses.push(ms)
      now += ms
    },
  })
  const wait = (ms: number): void => {
    now += ms
  }
  return { budget, pauses, wait }
}

test('a router within its share does not wait', () => {
  const { budget, pauses, wait } = startBudget()
  for (let i = 0; i < 50; i++) {
    expect(budget.run(() => i)).toBe(i)
    budget.spend(10)
    wait(10)
  }
  expect(pauses).toEqual([])
})

test('a router that has spent too much waits until it is paid, and its messages stay in order', async () => {
  const { budget, pauses } = startBudget()
  const done: number[] = []
  const task = (n: number) => () => {
    done.push(n)
    budget.spend(300)
  }
  await Promise.all([1, 2, 3].map((n) => budget.run(task(n))))
  expect(done).toEqual([1, 2, 3])
  expect(pauses).toEqual([200, 300])
})

test('what a router saves while it is silent is limited', async () => {
  const { budget, pauses, wait } = startBudget()
  wait(1_000_000)
  void budget.run(() => budget.spend(150))
  await budget.run(() => undefined)
  expect(pauses).toEqual([50])
})

test('a budget is untouched until something is spent, and again when that is paid', async () => {
  const { budget, wait } = startBudget()
  const seen = [budget.isFull()]
  budget.spend(150)
  const running = budget.run(() => undefined)
  wait(1000)
  seen.push(budget.isFull())
  await running
  expect([...seen, budget.isFull()]).toEqual([true, false, true])
})

test('a task that fails does not hold up the next one', async () => {
  const { budget } = startBudget()
  budget.spend(200)
  const failing = budget.run(() => {
    throw new Error('malformed')
  })
  await expect(failing).rejects.toThrow('malformed')
  expect(await budget.run(() => 'done')).toBe('done')
})

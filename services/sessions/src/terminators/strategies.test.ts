import { type TerminatorStrategy, terminatorStrategies } from '@overlay/model'
import { expect, test } from 'vitest'
import { bestOf, type Precedence } from '../domain/terminator-precedence.js'
import { openStrategies } from './strategies.js'

const strategies = openStrategies()

const candidate = (id: string, cost: number, precedence: Precedence = 'default') => ({ id, cost, precedence })

const select = (
  strategy: TerminatorStrategy,
  candidates: readonly ReturnType<typeof candidate>[],
  random = 0,
  stickinessToken = '',
) => {
  const dial = { serviceId: 's', instanceId: '', stickinessToken, random: () => random }
  return strategies[strategy].choose(bestOf(candidates), dial)?.id
}

const mixed = [
  candidate('cheap', 5),
  candidate('dear', 60_000),
  candidate('needed', 65_535, 'required'),
  candidate('down', 0, 'failed'),
]

test.each(terminatorStrategies)('%s chooses among the best precedence only', (strategy) => {
  for (const random of [0, 0.5, 0.999]) expect(select(strategy, mixed, random, 'cheap')).toBe('needed')
  expect(select(strategy, [candidate('down', 9, 'failed')])).toBe('down')
  expect(select(strategy, [])).toBeUndefined()
})

const costs = [candidate('a', 30), candidate('b', 10), candidate('c', 10)]

test.each([
  ['smartrouting', 0, '', 'b'],
  ['smartrouting', 0.99, '', 'c'],
  ['random', 0, '', 'a'],
  ['random', 0.34, '', 'b'],
  ['random', 0.99, '', 'c'],
  // shares of the others: 2/5, 4/5, 4/5
  ['weighted', 0.19, '', 'a'],
  ['weighted', 0.21, '', 'b'],
  ['weighted', 0.59, '', 'b'],
  ['weighted', 0.61, '', 'c'],
  ['weighted', 0.9999, '', 'c'],
  ['sticky', 0, 'a', 'a'],
  ['sticky', 0, 'unknown', 'b'],
] as const)('%s at %d with token "%s" selects %s', (strategy, random, token, expected) => {
  expect(select(strategy, costs, random, token)).toBe(expected)
})

test('terminators without a cost are chosen by weight alike', () => {
  const free = [candidate('a', 0), candidate('b', 0)]
  expect([select('weighted', free, 0.49), select('weighted', free, 0.51)]).toEqual(['a', 'b'])
})

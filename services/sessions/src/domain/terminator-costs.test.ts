import { expect, test } from 'vitest'
import { openCosts } from './terminator-costs.js'

test('a terminator costs two for each open circuit', () => {
  const costs = openCosts()
  costs.circuitOpened('t')
  costs.circuitOpened('t')
  expect(costs.costOf('t')).toBe(4)
  for (let i = 0; i < 3; i++) costs.circuitClosed('t')
  expect(costs.costOf('t')).toBe(0)
})

test('a recount takes the place of the counts, and failures stay', () => {
  const costs = openCosts()
  for (const id of ['t', 'u', 'v']) costs.circuitOpened(id)
  costs.dialFailed('u')
  costs.changed()
  costs.recount(
    new Map([
      ['t', 1],
      ['w', 3],
    ]),
  )
  expect([...costs.changed()].sort()).toEqual([
    ['u', 20],
    ['v', 0],
    ['w', 6],
  ])
  costs.credit()
  expect([...costs.changed().keys()].sort()).toEqual(['t', 'u', 'w'])
})

test('a failed dial costs twenty, a successful one and each minute give some back', () => {
  const costs = openCosts()
  costs.dialFailed('t')
  expect(costs.costOf('t')).toBe(20)
  costs.dialSucceeded('t')
  expect(costs.costOf('t')).toBe(18)
  costs.credit()
  expect(costs.costOf('t')).toBe(13)
  for (let i = 0; i < 3; i++) costs.credit()
  expect(costs.costOf('t')).toBe(0)
})

test('a cost has an upper limit', () => {
  const costs = openCosts()
  for (let i = 0; i < 4000; i++) costs.dialFailed('t')
  for (let i = 0; i < 10; i++) costs.circuitOpened('t')
  expect(costs.costOf('t')).toBe(65_535)
})

test('a change is reported once, with the cost of then', () => {
  const costs = openCosts()
  costs.circuitOpened('t')
  costs.circuitOpened('t')
  costs.dialSucceeded('u') // nothing to give back
  expect([...costs.changed()]).toEqual([['t', 4]])
  expect([...costs.changed()]).toEqual([])
  costs.circuitClosed('t')
  costs.circuitClosed('t')
  expect([...costs.changed()]).toEqual([['t', 0]])
})

test('all costs are reported once a minute', () => {
  const costs = openCosts()
  costs.circuitOpened('t')
  costs.changed()
  costs.credit()
  expect([...costs.changed()]).toEqual([['t', 2]])
})

import { expect, test } from 'vitest'
import { latest } from './positions.js'

const at = (number: number, timeline = 't1') => ({ timeline, number })

test.each([
  ['the later of each schema', { a: at(1), b: at(9) }, { a: at(2), b: at(8) }, { a: at(2), b: at(9) }],
  ['what only one of them has', { a: at(1) }, { b: at(2) }, { a: at(1), b: at(2) }],
  ['of two timelines that of the first', { a: at(1) }, { a: at(2, 't2') }, { a: at(1) }],
])('%s', (_rule, a, b, both) => {
  expect(latest(a, b)).toEqual(both)
})

import { expect, test } from 'vitest'
import { pemBlocksIn } from './pem.js'

const block = (label: string, body = 'AAAA'): string =>
  `-----BEGIN ${label}-----\n${body}\n-----END ${label}-----`
const labelsIn = (text: string): string[] => [...pemBlocksIn(text)].map(({ label }) => label)

test('blocks are found in order, with their labels, whatever stands between them', () => {
  const text = `x\n${block('A')}\nbetween ${block('B 2')}---`
  expect([...pemBlocksIn(text)]).toEqual([
    { label: 'A', text: block('A') },
    { label: 'B 2', text: block('B 2') },
  ])
})

test.each([
  ['a beginning without its end', '-----BEGIN A-----\nAAAA', []],
  ['an end without its beginning', 'AAAA\n-----END A-----', []],
  ['a beginning before the block', `-----BEGIN A-----\n${block('B')}`, ['B']],
  ['an end of another label', '-----BEGIN A-----\nAAAA\n-----END B-----\n-----END A-----', []],
  ['a label in lower case', block('a'), []],
])('%s is no block', (_what, text, labels) => {
  expect(labelsIn(text)).toEqual(labels)
})

test('a million beginnings are read once: a quadratic search would never end', () => {
  const beginnings = '-----BEGIN A-----\n'.repeat(1_000_000)
  expect(labelsIn(beginnings + block('B'))).toEqual(['B'])
})

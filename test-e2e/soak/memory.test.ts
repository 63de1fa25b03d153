import { expect, test } from 'vitest'
import { openMemory } from './memory.js'

test('medians of the first and the last quarter are compared', () => {
  const memory = openMemory(100, 500)
  const samples = [
    [99, 1],
    [100, 10],
    [150, 90],
    [199, 20],
    [200, 1000],
    [399, 1000],
    [400, 30],
    [450, 25],
    [501, 40], // the last round ends late
  ] as const
  for (const [at, mib] of samples) memory.add(at, mib)
  expect(memory.compared()).toEqual({ first: 20, last: 30 })
})

test('a quarter without a sample compares with nothing', () => {
  const { first, last } = openMemory(0, 4).compared()
  expect(last <= first).toBe(false)
})

import { expect, test } from 'vitest'
import { formattedName, nextName } from './names.js'

const parts = {
  caName: 'factory',
  caId: 'c1',
  commonName: '[caId]',
  requestedName: 'wanted',
  identityId: 'i1',
}

test.each([
  ['[caName]-[commonName]', 'factory-[caId]'],
  ['[caId]/[requestedName]/[identityId]', 'c1/wanted/i1'],
  ['[caName][caName] [toString] [nothing]', 'factoryfactory [toString] [nothing]'],
])('the format %s yields %s', (format, name) => {
  expect(formattedName(format, parts)).toBe(name)
})

test('each number comes behind those that were taken', () => {
  expect(nextName(nextName('x', 1), 2)).toBe('x000001000002')
})

import { expect, test } from 'vitest'
import { hostPeerData } from './peer-data.js'

test.each([
  [1, false],
  [5, false],
  [128, false],
  [255, false],
  [1003, true],
  [1011, true],
  [1025, true],
  [1101, false],
  [1104, false],
  [1110, false],
  [1113, false],
  [1114, true],
])('header %i of a route result reaches the client: %s', (key, isPassedOn) => {
  expect(hostPeerData(new Map([[key, Buffer.from('x')]])).has(key)).toBe(isPassedOn)
})

import { expect, test } from 'vitest'
import { dialerPeerData, hostPeerData } from './peer-data.js'

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

test.each([
  ['alice', true],
  ['bob', false],
])(
  'the host learns that a router names %s as the client, whose identity is alice: %s',
  (named, isPassedOn) => {
    const entries = [
      [1003, 'key'],
      [1115, named],
      [1116, 'Alice'],
    ] as const
    const peerData = new Map(entries.map(([key, text]) => [key, Buffer.from(text)]))
    const passed = [...dialerPeerData(peerData, 'alice').keys()]
    expect(passed).toEqual(isPassedOn ? [1003, 1115, 1116] : [1003])
  },
)

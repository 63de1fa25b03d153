import { groupedHeader, headerKey, LinkListeners, type ReceivedHello } from '@overlay/channel'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { Refused, readHello } from './check-hello.js'

const listeners = Buffer.from(LinkListeners.encode({ listeners: [] }).finish())
const keys = [...Object.values(headerKey), ...Object.values(groupedHeader)]
const known = ['ctrl.default', 'ctrl.high', 'v2.0.3|a|b|c|d', 'sessions/x-1'].map((text) => Buffer.from(text))
const value = fc.oneof(
  fc.uint8Array({ maxLength: 400 }).map((bytes) => Buffer.from(bytes)),
  fc.constantFrom(...known, Buffer.of(1), Buffer.of(2), listeners),
)

test('whatever the headers of a hello are, it is read or refused', () => {
  let read = 0
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.constantFrom(...keys), value)), fc.string(), (headers, version) => {
      const hello = {
        routerId: 'r',
        version: { version, revision: '', buildDate: '', os: '', arch: '' },
        headers: new Map(headers),
      } as unknown as ReceivedHello
      try {
        const { group, features } = readHello(hello)
        expect(features.isGrouped).toBe(group !== undefined)
        read++
      } catch (err) {
        expect(err).toBeInstanceOf(Refused)
      }
    }),
    { numRuns: 2000 },
  )
  expect(read).toBeGreaterThan(100)
})

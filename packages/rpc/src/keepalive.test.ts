import { expect, test, vi } from 'vitest'
import { startKeepalive, type Waiting } from './keepalive.js'

/** What the replica needs at each of `count` beats without a message. */
const beats = (keepalive: ReturnType<typeof startKeepalive>, waiting: Waiting, count: number) =>
  Array.from({ length: count }, () => keepalive.beat(waiting))

test('a replica for which nothing waits is never asked', () => {
  const keepalive = startKeepalive()
  expect(new Set(beats(keepalive, 'nothing', 100))).toEqual(new Set(['nothing']))
  expect(keepalive.isResponsive()).toBe(true)
})

test('a replica whose messages arrive between the beats is never asked', () => {
  const keepalive = startKeepalive()
  for (let n = 0; n < 100; n++) {
    keepalive.received()
    expect(keepalive.beat('calls')).toBe('nothing')
  }
})

test('a silent replica is asked after the second beat of a call, and is unresponsive 2 s later', () => {
  const keepalive = startKeepalive()
  expect(beats(keepalive, 'calls', 2)).toEqual(['nothing', 'ping'])
  beats(keepalive, 'calls', 7)
  expect(keepalive.isResponsive()).toBe(true)
  keepalive.beat('calls')
  expect(keepalive.isResponsive()).toBe(false)
  keepalive.received()
  expect(keepalive.isResponsive()).toBe(true)
})

test('a replica with streams only is asked after 2 s without a message', () => {
  const keepalive = startKeepalive()
  expect(beats(keepalive, 'streams', 9)).toEqual([...Array(8).fill('nothing'), 'ping'])
})

test('an unanswered ping is repeated, also when nothing waits any more, until the connections are given up', () => {
  const keepalive = startKeepalive()
  beats(keepalive, 'calls', 2)
  expect(keepalive.isAsked()).toBe(true)
  expect(beats(keepalive, 'nothing', 52)).toEqual([...Array(51).fill('ping'), 'reset'])
  expect(keepalive.isResponsive()).toBe(false) // until a message arrives
})

test('only what is registered ends, and once', () => {
  const keepalive = startKeepalive()
  const [end, removed] = [vi.fn(), vi.fn()]
  keepalive.onUnresponsive(end)
  keepalive.onUnresponsive(removed)()
  expect(keepalive.hasStreams()).toBe(true)
  keepalive.endAll()
  expect([end, removed].map(({ mock }) => mock.calls.length)).toEqual([1, 0])
})

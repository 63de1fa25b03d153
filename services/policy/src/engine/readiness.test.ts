import { expect, test } from 'vitest'
import { openReadiness } from './readiness.js'

/** Replicas on one bus. `stuck`: their memory has no position. */
function replicas(...names: readonly string[]) {
  let nowMs = 0
  const handlers = new Set<{ readonly subject: string; handle(message: unknown, subject: string): void }>()
  const bus = {
    isConnected: true,
    publish(subject: string, message: object) {
      if (bus.isConnected)
        for (const one of handlers) if (one.subject === subject) one.handle(message, subject)
    },
    subscribe(subject: string, handle: (message: unknown, subject: string) => void) {
      const handler = { subject, handle }
      handlers.add(handler)
      return { [Symbol.dispose]: () => void handlers.delete(handler) }
    },
  }
  const stuck = new Set<string>()
  const freshAt = new Map<string, number>() // of memories that have lost their owners
  const ageMs = (name: string): number => {
    if (stuck.has(name)) return Infinity
    const lostAt = freshAt.get(name)
    return lostAt === undefined ? 100 : nowMs - lostAt
  }
  const opened = names.map((name) =>
    openReadiness(bus, { ageMs: () => ageMs(name), isLoaded: () => true }, () => nowMs),
  )
  return {
    bus,
    stuck,
    handlers,
    opened,
    /** From now on the memory of this replica becomes older. It has heard its owners before, at this age. */
    loseOwners(name: string, ageMs: number) {
      freshAt.set(name, nowMs - ageMs)
    },
    /** As of probes every five seconds for this time. */
    statesAfter(seconds: number) {
      for (let passed = 0; passed < seconds; passed += 5) {
        nowMs += 5000
        for (const one of opened) one.state()
      }
      return opened.map((one) => one.state())
    },
  }
}

test('a replica whose memory stays old is replaceable while another is fresh, and serves again when it is', () => {
  const { stuck, statesAfter } = replicas('one', 'other')
  expect(statesAfter(60)).toEqual(['ok', 'ok'])
  stuck.add('one')
  expect(statesAfter(10)).toEqual(['ok', 'ok'])
  expect(statesAfter(10)).toEqual(['replaceable', 'ok'])
  stuck.delete('one')
  expect(statesAfter(5)).toEqual(['ok', 'ok'])
})

test('replicas whose memories are all old stay in service', () => {
  const { stuck, statesAfter } = replicas('one', 'other')
  stuck.add('one').add('other')
  expect(statesAfter(120)).toEqual(['ok', 'ok'])
})

test.each([
  ['while another one is replaceable', true],
  ['while all were fresh', false],
])('replicas that lose their owners together do not all leave service: %s', (_when, isOneStuck) => {
  const { stuck, loseOwners, opened, statesAfter } = replicas('one', 'other', 'third')
  if (isOneStuck) {
    stuck.add('one')
    expect(statesAfter(60)).toEqual(['replaceable', 'ok', 'ok'])
  }
  // the heartbeats of their streams came at other times
  loseOwners('one', 5000)
  loseOwners('other', 2000)
  loseOwners('third', 0)
  for (let seconds = 0; seconds < 120; seconds += 5) {
    statesAfter(5)
    expect(opened.slice(1).map((one) => one.state())).toEqual(['ok', 'ok'])
  }
  expect(statesAfter(5)).toEqual(['ok', 'ok', 'ok'])
})

test('a replica that lost its replacement serves again', () => {
  const { stuck, statesAfter } = replicas('one', 'other')
  stuck.add('one')
  expect(statesAfter(60)).toEqual(['replaceable', 'ok'])
  stuck.add('other')
  expect(statesAfter(60)).toEqual(['ok', 'ok'])
})

test('a single replica, and one that hears nothing of others, stay in service', () => {
  const alone = replicas('one')
  alone.stuck.add('one')
  expect(alone.statesAfter(60)).toEqual(['ok'])
  const cut = replicas('one', 'other')
  cut.bus.isConnected = false
  cut.stuck.add('one')
  expect(cut.statesAfter(60)).toEqual(['ok', 'ok'])
})

test('a replica that ends leaves nothing behind', () => {
  const { opened, handlers } = replicas('one')
  for (const one of opened) one[Symbol.dispose]()
  expect(handlers.size).toBe(0)
})

import { Fault } from '@overlay/rpc'
import { expect, test } from 'vitest'
import { contentKey } from '../domain/content.js'
import { emptyState } from '../domain/state.js'
import { watchView } from './view-watch.js'

const alice = { identityId: 'alice', isAdmin: false }
const signal = AbortSignal.timeout(60_000)

/** An engine without services that announces changes on demand, and lets `during` happen while memory catches up. */
function engine(during: (announce: (ids: readonly string[] | 'all') => void) => void = () => undefined) {
  const listeners = new Set<(ids: readonly string[] | 'all') => void>()
  const announce = (ids: readonly string[] | 'all'): void => {
    for (const listener of listeners) listener(ids)
  }
  return {
    state: emptyState(),
    listeners,
    announce,
    onChange(listener: (ids: readonly string[] | 'all') => void) {
      listeners.add(listener)
      return { [Symbol.dispose]: () => void listeners.delete(listener) }
    },
    catchUpOwn: async () => during(announce),
  }
}

test('a page has the key of memory when nothing changed for its viewer', async () => {
  const calm = engine((announce) => announce(['bob']))
  using view = watchView(calm, alice)
  calm.announce(['bob'])
  expect(await view.key({ signal })).toBe(contentKey(calm.state, alice))
})

test('a page has no key when what its viewer sees changed, even if it looks the same again', async () => {
  const read = engine()
  using first = watchView(read, alice)
  read.announce(['alice'])
  expect(await first.key({ signal })).toBe('')

  const caughtUp = engine((announce) => {
    announce(['alice'])
    announce(['alice'])
  })
  using second = watchView(caughtUp, alice)
  expect(await second.key({ signal })).toBe('')

  const loaded = engine((announce) => announce('all'))
  using third = watchView(loaded, alice)
  expect(await third.key({ signal })).toBe('')
})

test('a page has no key while memory cannot catch up', async () => {
  using view = watchView({ ...engine(), catchUpOwn: () => Promise.reject(new Fault('TIMEOUT')) }, alice)
  expect(await view.key({ signal })).toBe('')
})

test('a page of a viewer whose admin rights differ in memory has no key', async () => {
  using view = watchView(engine(), { ...alice, isAdmin: true })
  expect(await view.key({ signal })).toBe('')
})

test('a watch that ends leaves nothing behind', () => {
  const watched = engine()
  watchView(watched, alice)[Symbol.dispose]()
  expect(watched.listeners.size).toBe(0)
})

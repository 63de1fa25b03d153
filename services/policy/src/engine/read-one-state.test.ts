import { metrics } from '@overlay/process'
import { Fault } from '@overlay/rpc'
import { expect, test } from 'vitest'
import { contentKey } from '../domain/authorization/content-key.js'
import { emptyState } from '../domain/state.js'
import { Overtaken, readOneState } from './read-one-state.js'

const alice = { identityId: 'alice', isAdmin: false }
const needsNoKey = () => false
const call = { signal: AbortSignal.timeout(60_000) }

/** An engine without services that announces changes on demand, also while memory catches up. */
function engine() {
  const listeners = new Set<(ids: readonly string[] | 'all') => void>()
  const fake = {
    state: emptyState(),
    listeners,
    announce(ids: readonly string[] | 'all') {
      for (const listener of listeners) listener(ids)
    },
    onChange(listener: (ids: readonly string[] | 'all') => void) {
      listeners.add(listener)
      return { [Symbol.dispose]: () => void listeners.delete(listener) }
    },
    catchUp: (): Promise<void> => Promise.resolve(),
  }
  return fake
}

/** Reads, announcing these changes in turn; returns the number of the read that was answered, and the key. */
async function read(
  on: ReturnType<typeof engine>,
  changes: readonly (readonly string[] | 'all')[],
  viewer = alice,
) {
  let reads = 0
  const once = async () => {
    const change = changes[reads]
    reads++
    if (change) on.announce(change)
    return reads
  }
  return readOneState(on, viewer, call, once, (answer) => answer === reads)
}

test('an answer has the key of memory when nothing changed for its viewer', async () => {
  const calm = engine()
  expect(await read(calm, [['bob']])).toEqual({ answer: 1, key: contentKey(calm.state, alice) })
})

test('an answer that needs no key has none', async () => {
  expect(await readOneState(engine(), alice, call, async () => 1, needsNoKey)).toEqual({ answer: 1, key: '' })
})

test('what changed for its viewer meanwhile is read again, even if it looks the same again', async () => {
  const busy = engine()
  const repeated = async () => (await metrics.readsRepeated.get()).values[0]?.value ?? 0
  const before = await repeated()
  expect(await read(busy, [['alice'], 'all', ['alice', 'alice']])).toEqual({
    answer: 4,
    key: contentKey(busy.state, alice),
  })
  expect((await repeated()) - before).toBe(3)
  const late = engine()
  let catches = 0
  late.catchUp = async () => {
    if (catches++ === 0) late.announce(['alice'])
  }
  expect((await read(late, [])).answer).toBe(2)
})

test('what changes all the time is answered without a key', async () => {
  expect(await read(engine(), Array(9).fill('all'))).toEqual({ answer: 8, key: '' })
})

test('an administrator is answered at once, and without a key if anything changed', async () => {
  const admin = { ...alice, isAdmin: true }
  expect(await read(engine(), [['alice']], admin)).toEqual({ answer: 1, key: '' })
})

test('an answer of which a service was taken away is read again, and refused if that does not end', async () => {
  const taken = engine()
  let reads = 0
  const once = async () => {
    reads++
    if (reads === 1) throw new Overtaken()
    return reads
  }
  expect((await readOneState(taken, alice, call, once, needsNoKey)).answer).toBe(2)
  const always = () => readOneState(taken, alice, call, () => Promise.reject(new Overtaken()), needsNoKey)
  await expect(always()).rejects.toMatchObject({ code: 'UNAVAILABLE' })
  taken.catchUp = () => Promise.reject(new Fault('TIMEOUT'))
  reads = 0
  expect((await readOneState(taken, alice, call, once, needsNoKey)).answer).toBe(2)
})

test('other failures are those of the read', async () => {
  const missing = readOneState(
    engine(),
    alice,
    call,
    () => Promise.reject(new Fault('NOT_FOUND')),
    needsNoKey,
  )
  await expect(missing).rejects.toMatchObject({ code: 'NOT_FOUND' })
})

test('an answer of memory that cannot catch up shows one state, too, has no key, and waits once', async () => {
  const stuck = engine()
  let waits = 0
  stuck.catchUp = () => {
    waits++
    return Promise.reject(new Fault('TIMEOUT'))
  }
  expect(await read(stuck, [])).toEqual({ answer: 1, key: '' })
  expect(await read(stuck, [['alice'], ['alice']])).toEqual({ answer: 3, key: '' })
  expect(waits).toBe(2)
})

test('an answer for a viewer whose admin rights differ in memory has no key', async () => {
  expect((await read(engine(), [], { ...alice, isAdmin: true })).key).toBe('')
})

test('a read that ends leaves nothing behind', async () => {
  const watched = engine()
  await read(watched, [])
  expect(watched.listeners.size).toBe(0)
})

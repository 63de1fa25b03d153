import { expect, test } from 'vitest'
import { openCache } from './cache.js'

interface Value {
  readonly id: string
  readonly tags: readonly string[]
}
const open = (maxEntries = 10) =>
  openCache<Value>(
    maxEntries * 10,
    ({ tags }) => tags,
    () => 10,
  )
const value = (id: string, ...tags: string[]): Value => ({ id, tags })

/** A load that ends when the test says so. */
function pendingLoad() {
  const waiting: ((value: Value) => void)[] = []
  return {
    fetch: () => new Promise<Value>((resolve) => waiting.push(resolve)),
    answer: (v: Value) => waiting.shift()?.(v),
    count: () => waiting.length,
  }
}
const turn = () => new Promise((resolve) => setImmediate(resolve))

test('simultaneous misses of a key share one load', async () => {
  const cache = open()
  const { fetch, answer, count } = pendingLoad()
  const both = [cache.load('k', 1, fetch), cache.load('k', 1, fetch)]
  expect(count()).toBe(1)
  answer(value('a', 't'))
  expect(await Promise.all(both)).toEqual([value('a', 't'), value('a', 't')])
  expect(cache.get('k')).toEqual(value('a', 't'))
})

test('a caller with a newer version does not share an older load', async () => {
  const cache = open()
  const { fetch, answer, count } = pendingLoad()
  const first = cache.load('k', 1, fetch)
  const second = cache.load('k', 2, fetch)
  expect(count()).toBe(2)
  answer(value('old', 't'))
  answer(value('new', 't'))
  expect([(await first).id, (await second).id]).toEqual(['old', 'new'])
})

test('a drop that arrives while a load is under way wins', async () => {
  const cache = open()
  const { fetch, answer } = pendingLoad()
  const loaded = cache.load('k', 1, fetch)
  cache.drop('t')
  answer(value('outdated', 't'))
  await turn()
  expect(cache.get('k')).toBeUndefined()
  answer(value('current', 't')) // it is asked again
  expect((await loaded).id).toBe('current')
  expect(cache.get('k')?.id).toBe('current')
})

test('a drop of everything does too', async () => {
  const cache = open()
  const { fetch, answer } = pendingLoad()
  const loaded = cache.load('k', 1, fetch)
  cache.dropAll()
  answer(value('outdated', 't'))
  await turn()
  answer(value('current', 't'))
  expect((await loaded).id).toBe('current')
})

test('a drop of another tag has no effect', async () => {
  const cache = open()
  const { fetch, answer } = pendingLoad()
  const loaded = cache.load('k', 1, fetch)
  cache.drop('other')
  answer(value('a', 't'))
  expect((await loaded).id).toBe('a')
  expect(cache.get('k')?.id).toBe('a')
})

test('a value dropped during each attempt is returned, but not cached', async () => {
  const cache = open()
  const fetch = async () => {
    cache.drop('t')
    return value('a', 't')
  }
  expect((await cache.load('k', 1, fetch)).id).toBe('a')
  expect(cache.get('k')).toBeUndefined()
})

test('a failed load is not cached', async () => {
  const cache = open()
  await expect(cache.load('k', 1, () => Promise.reject(new Error('no')))).rejects.toThrow('no')
  expect((await cache.load('k', 1, async () => value('a'))).id).toBe('a')
})

test('a tag drops all that carry it', () => {
  const cache = open()
  cache.set('a', value('a', 'x', 'both'))
  cache.set('b', value('b', 'y', 'both'))
  cache.drop('x')
  expect([cache.get('a'), cache.get('b')?.id]).toEqual([undefined, 'b'])
  cache.drop('both')
  expect(cache.size).toBe(0)
})

test('the least recently used value is evicted first', () => {
  const cache = open(2)
  cache.set('a', value('a', 't'))
  cache.set('b', value('b', 't'))
  cache.get('a')
  cache.set('c', value('c', 't'))
  expect([cache.get('a')?.id, cache.get('b'), cache.get('c')?.id]).toEqual(['a', undefined, 'c'])
})

test('bytes are bounded', () => {
  const cache = openCache<Value>(
    25,
    ({ tags }) => tags,
    () => 10,
  )
  cache.set('a', value('a'))
  cache.set('b', value('b'))
  cache.set('c', value('c'))
  expect([cache.get('a'), cache.get('c')?.id]).toEqual([undefined, 'c'])
})

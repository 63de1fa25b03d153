import { metrics } from '@overlay/process'
import { type Change, type Changes, Fault, type Position } from '@overlay/rpc'
import sql from 'sql-template-tag'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import type { ChangeLog } from '../src/change-log/change-log.js'
import { localSource } from '../src/change-log/local-source.js'
import { type Memory, openProjection, type Projection } from '../src/change-log/projection.js'
import type { Source } from '../src/change-log/source.js'
import { log, numbersTo, openStreams, rowChange, type Streams, until, write } from './streams.js'

let streams: Streams
let one: ChangeLog
let other: ChangeLog
let projections: Projection[] = []
beforeAll(async () => {
  streams = await openStreams()
})
beforeEach(async () => {
  rows = ['there before']
  one = await streams.replica()
  other = await streams.replica()
})
afterEach(async () => {
  for (const projection of projections) await projection[Symbol.asyncDispose]()
  projections = []
  await streams.close()
})
afterAll(() => streams[Symbol.asyncDispose]())

let rows: string[]
const sourceOf = (changeLog: ChangeLog): Source =>
  localSource(changeLog, {
    async *identities(ids) {
      for (const id of rows) if (!ids || ids.includes(id)) yield { id, json: { id } }
    },
  })

/** The rows in memory, and the number of loads. */
interface TestMemory extends Memory {
  readonly ids: Set<string>
  readonly applied: Change[]
  loads: number
}
const memory = (): TestMemory => {
  const store: TestMemory = {
    name: 'test',
    kinds: ['identities'],
    ids: new Set(),
    applied: [],
    loads: 0,
    load() {
      const loaded = new Set<string>()
      return {
        add(rows) {
          for (const { id } of rows) loaded.add(id)
        },
        end() {
          store.loads += 1
          store.ids.clear()
          for (const id of loaded) store.ids.add(id)
        },
      }
    },
    apply(changes) {
      for (const change of changes) {
        store.applied.push(change)
        if (change.json.length > 0) store.ids.add(change.id)
        else store.ids.delete(change.id)
      }
    },
  }
  return store
}
const open = async (source: Source, store: Memory): Promise<Projection> => {
  const projection = await openProjection(source, store, { log })
  projections.push(projection)
  return projection
}
const timeout = () => AbortSignal.timeout(30_000)
const after = ({ timeline, number }: Position, count: number): Position => ({
  timeline,
  number: number + count,
})

/** An owner whose pushes never arrive: all that the projection learns after its load it has asked for. */
const silent = (source: Source): Source => ({
  ...source,
  async *watch(_after, signal) {
    await new Promise((resolve) => signal.addEventListener('abort', resolve))
  },
})

test('it loads the rows, then follows every change once', async () => {
  const store = memory()
  const projection = await open(sourceOf(one), store)
  expect([...store.ids]).toEqual(['there before'])
  const from = await one.head()
  await Promise.all(
    numbersTo(50).map((n) =>
      write(n % 2 ? one : other, rowChange(`${n}`), { ...rowChange('x'), kind: 'others' }),
    ),
  )
  await projection.waitFor(after(from, 100), timeout())
  const numbers = store.applied.map(({ number }) => number)
  expect(numbers).toEqual([...new Set(numbers)].sort((a, b) => a - b))
  expect(store.ids.size).toBe(51)
  expect(store.loads).toBe(1)
})

test('without bus and pushes, a reader that waits for a position gets it, from any replica', async () => {
  streams.bus.stop()
  const store = memory()
  const projection = await open(silent(sourceOf(other)), store)
  for (const n of numbersTo(5)) {
    const position = await write(one, rowChange(`${n}`))
    await projection.waitFor(position, timeout())
    expect(store.ids.has(`${n}`)).toBe(true)
  }
})

test('without bus and pushes, a confirmed reader sees all that was written before', async () => {
  streams.bus.stop()
  const store = memory()
  const projection = await open(silent(sourceOf(other)), store)
  for (const n of numbersTo(5)) {
    await write(one, rowChange(`${n}`))
    await Promise.all([projection.catchUp(timeout()), projection.catchUp(timeout())])
    expect(store.ids.has(`${n}`)).toBe(true)
  }
})

test('callers that come during a pull are served by the next one, all of them by one', async () => {
  const source = silent(sourceOf(one))
  let pulls = 0
  let release = (): void => undefined
  const blocked = new Promise<void>((resolve) => {
    release = resolve
  })
  const store = memory()
  const projection = await open(
    {
      ...source,
      async pull(position, signal) {
        const answer = await source.pull(position, signal, ['identities'])
        if (++pulls === 1) await blocked
        return answer
      },
    },
    store,
  )
  const first = projection.catchUp(timeout())
  await until(() => pulls === 1)
  const position = await write(one, rowChange('later'))
  const joined = [projection.waitFor(position, timeout()), projection.catchUp(timeout())]
  release()
  await Promise.all([first, ...joined])
  expect(pulls).toBe(2)
  expect(store.ids.has('later')).toBe(true)
})

test('a new timeline leads to a reload, and readers never see half of it', async () => {
  const store = memory()
  rows = numbersTo(1200).map((n) => `${n}`)
  const projection = await open(sourceOf(one), store)
  await streams.admin.query(sql`update stream set wal = '00000000'`)
  rows = numbersTo(1300).map((n) => `${n}`)
  const position = await write(other, rowChange('1'))
  await projection.waitFor(position, timeout())
  expect(store.loads).toBe(2)
  expect(store.ids.size).toBe(1300)
  expect(projection.position()?.timeline).toBe(position.timeline)
})

test('during a reload it has no position, and callers that wait are served at its end', async () => {
  const store = memory()
  let release = (): void => undefined
  const blocked = new Promise<void>((resolve) => {
    release = resolve
  })
  const source = sourceOf(one)
  let loads = 0
  const projection = await open(
    {
      ...silent(source),
      async *load(kinds, signal) {
        for await (const message of source.load(kinds, signal)) {
          yield message
          if (message.changes.length > 0 && ++loads === 2) await blocked
        }
      },
    },
    store,
  )
  const before = projection.position()
  await streams.admin.query(sql`update stream set wal = '00000000'`)
  const position = await write(other, rowChange('after'))
  const reached = projection.waitFor(position, timeout())
  await until(() => loads === 2)
  expect([projection.position(), projection.isFresh()]).toEqual([undefined, false])
  const waiting = before && projection.waitFor(before, timeout())
  release()
  await Promise.all([reached, waiting])
  expect(projection.position()).toEqual(position)
})

test('a load that fails is counted with its cause, and repeated until it succeeds', async () => {
  const store = memory()
  const { load } = store
  const source = sourceOf(other)
  const reasons = [new Fault('UNAVAILABLE'), new Error('no such row')]
  const failedBefore = await loadFailures()
  await open(source, {
    ...store,
    load() {
      const reason = reasons.shift()
      if (reason) throw reason
      return load()
    },
  })
  expect([...store.ids]).toEqual(['there before'])
  const failed = await loadFailures()
  for (const cause of ['unavailable', 'error'] as const) expect(failed[cause] - failedBefore[cause]).toBe(1)
})

async function loadFailures() {
  const { values } = await metrics.followLoadFailed.get()
  const count = (cause: string): number =>
    values.find(({ labels }) => labels.cause === cause && labels.follower === 'test')?.value ?? 0
  return { unavailable: count('unavailable'), error: count('error') }
}

test('a position of an older timeline is met by the head of the newer', async () => {
  const store = memory()
  const projection = await open(silent(sourceOf(one)), store)
  const old = { timeline: '00000000-0000-0000-0000-000000000000', number: 1_000_000 }
  await write(other, rowChange('newer'))
  await projection.waitFor(old, timeout())
  expect(store.ids.has('newer')).toBe(true)
})

test('a follower that is too far behind reloads', async () => {
  const store = memory()
  let owner = silent(sourceOf(one))
  await open(
    {
      schema: 'identity',
      load: (kinds, signal) => owner.load(kinds, signal),
      watch: (...about) => owner.watch(...about),
      pull: (...about) => owner.pull(...about),
      row: (...about) => owner.row(...about),
    },
    store,
  )
  const last = await write(other, ...numbersTo(5).map((n) => rowChange(`${n}`)))
  await streams.admin.query(sql`delete from change where number <= ${last.number}`)
  rows.push('kept')
  owner = sourceOf(await streams.replica()) // the others still have them in memory
  const [projection] = projections
  await projection?.waitFor(await write(other, rowChange('new')), timeout())
  expect(store.ids).toContain('kept')
  expect(store.loads).toBe(2)
})

/** Refuses the change of this row when it says so. */
const refusing = (id: string, always: boolean) => {
  const store = memory()
  const unknown: string[] = []
  const isBad = (change: Change): boolean =>
    change.id === id && (always || JSON.parse(change.json.toString()).bad === true)
  return {
    ...store,
    unknown: (change: Change) => void unknown.push(change.id),
    notKnown: unknown,
    apply(changes: readonly Change[], upto: Position) {
      if (changes.some(isBad)) throw new Error('not understood')
      store.apply(changes, upto)
    },
    loads: () => store.loads,
  }
}

test('a change that the memory refuses is taken as its row is now, and no other waits for it', async () => {
  const store = refusing('bad', false)
  rows.push('bad')
  const projection = await open(sourceOf(one), store)
  store.ids.delete('bad')
  const position = await write(one, rowChange('a'), rowChange('bad', { bad: true }), rowChange('b'))
  await projection.waitFor(position, timeout())
  expect([...store.ids]).toEqual(['there before', 'a', 'bad', 'b'])
  expect([store.loads(), store.notKnown]).toEqual([1, []])
})

test('a row that the memory refuses however it comes is unknown to it, and no other waits for it', async () => {
  const store = refusing('bad', true)
  const projection = await open(sourceOf(one), store)
  rows.push('bad')
  const position = await write(one, rowChange('a'), rowChange('bad'), rowChange('b'))
  await projection.waitFor(position, timeout())
  expect([[...store.ids], store.notKnown, store.loads()]).toEqual([['there before', 'a', 'b'], ['bad'], 1])
})

test('while the owner is unavailable, a change that the memory refuses is not given up', async () => {
  const store = refusing('bad', false)
  rows.push('bad', 'b')
  const source = sourceOf(one)
  let refusals = 0
  const away = () => Promise.reject(new Fault('UNAVAILABLE'))
  const projection = await open(
    {
      ...source,
      row: (...about) => (refusals++ < 8 ? away() : source.row(...about)),
      pull: (...about) => (refusals < 8 ? away() : source.pull(...about)),
    },
    store,
  )
  const position = await write(one, rowChange('bad', { bad: true }), rowChange('b'))
  await projection.waitFor(position, timeout())
  expect([store.ids.has('bad'), store.ids.has('b'), store.notKnown]).toEqual([true, true, []])
})

test('a message that repeats or skips changes does no harm', async () => {
  const source = sourceOf(one)
  const store = memory()
  const from = await one.head()
  let calls = 0
  const skipping = ({ after, ...message }: Changes): Changes => ({
    ...message,
    after: after && { ...after, number: after.number + 1 },
    changes: message.changes.slice(1),
  })
  const projection = await open(
    {
      ...silent(source),
      async *watch(position, signal, options) {
        for await (const message of source.watch(position, signal, { ...options, kinds: ['identities'] })) {
          yield calls++ === 1 ? skipping(message) : message
          yield message
        }
      },
    },
    store,
  )
  for (const n of numbersTo(5)) await write(one, rowChange(`${n}`))
  await projection.waitFor(after(from, 5), timeout())
  expect(store.applied.map(({ number }) => number)).toEqual(numbersTo(from.number + 5, from.number + 1))
})

test('an owner of an earlier release, which tells changes of all kinds, is followed too', async () => {
  const source = sourceOf(one)
  const earlier = (message: Changes): Changes => ({ ...message, after: undefined, ageMs: 0 })
  const store = memory()
  let calls = 0
  const projection = await open(
    {
      ...source,
      async *watch(position, signal, options) {
        for await (const message of source.watch(position, signal, { ...options, kinds: [] })) {
          const old = earlier(message)
          yield message.changes.length > 1 && calls++ === 0 ? { ...old, changes: old.changes.slice(1) } : old
        }
      },
      pull: async (position, signal) => earlier(await source.pull(position, signal, [])),
    },
    store,
  )
  const position = await write(one, rowChange('a'), { ...rowChange('x'), kind: 'others' }, rowChange('b'))
  await projection.waitFor(position, timeout())
  expect(store.applied.map(({ id }) => id)).toEqual(['a', 'b'])
})

test('it is trusted while its owner says something, and not when it says nothing', async () => {
  const source = sourceOf(one)
  const trusting = await open(source, memory())
  await until(() => trusting.isFresh())
  const quiet = await open(silent(source), memory())
  await until(() => !quiet.isFresh())
  expect(trusting.isFresh()).toBe(true)
})

test('a wait ends with its signal', async () => {
  const projection = await open(silent(sourceOf(one)), memory())
  const head = await one.head()
  const abort = new AbortController()
  const waiting = projection.waitFor(after(head, 1), abort.signal)
  abort.abort()
  await expect(waiting).rejects.toMatchObject({ code: 'TIMEOUT' })
  await expect(projection.catchUp(abort.signal)).rejects.toMatchObject({ code: 'TIMEOUT' })
})

test('in the background it opens before its owner answers', async () => {
  const source = sourceOf(one)
  let refusals = 0
  const store = memory()
  const projection = await openProjection(
    {
      ...source,
      load(kinds, signal) {
        if (refusals++ === 0) throw new Error('not yet')
        return source.load(kinds, signal)
      },
    },
    store,
    { log, loaded: 'background' },
  )
  projections.push(projection)
  expect([projection.position(), projection.isFresh()]).toEqual([undefined, false])
  await projection.catchUp(timeout())
  expect([...store.ids]).toEqual(['there before'])
})

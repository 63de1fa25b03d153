import { type Change, type Changes, Fault, type Position } from '@overlay/rpc'
import sql from 'sql-template-tag'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import type { ChangeLog } from '../src/change-log/change-log.js'
import { localSource } from '../src/change-log/local-source.js'
import { type Memory, openProjection, type Projection } from '../src/change-log/projection.js'
import type { Source } from '../src/change-log/source.js'
import { log, numbersTo, openStreams, type Streams, told, until, write } from './streams.js'

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

/** What it knows, and how often it began anew. */
interface Known extends Memory {
  readonly ids: Set<string>
  readonly applied: Change[]
  loads: number
}
const memory = (): Known => {
  const known: Known = {
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
          known.loads += 1
          known.ids.clear()
          for (const id of loaded) known.ids.add(id)
        },
      }
    },
    apply(changes) {
      for (const change of changes) {
        known.applied.push(change)
        if (change.json.length > 0) known.ids.add(change.id)
        else known.ids.delete(change.id)
      }
    },
  }
  return known
}
const open = async (source: Source, known: Memory): Promise<Projection> => {
  const projection = await openProjection(source, known, { bus: streams.bus, log })
  projections.push(projection)
  return projection
}
const soon = () => AbortSignal.timeout(10_000)
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
  const known = memory()
  const projection = await open(sourceOf(one), known)
  expect([...known.ids]).toEqual(['there before'])
  const from = await one.head()
  await Promise.all(
    numbersTo(50).map((n) => write(n % 2 ? one : other, told(`${n}`), { ...told('x'), kind: 'others' })),
  )
  await projection.waitFor(after(from, 100), soon())
  const numbers = known.applied.map(({ number }) => number)
  expect(numbers).toEqual([...new Set(numbers)].sort((a, b) => a - b))
  expect(known.ids.size).toBe(51)
  expect(known.loads).toBe(1)
})

test('without bus and pushes, a reader that waits for a position gets it, from any replica', async () => {
  streams.bus.stop()
  const known = memory()
  const projection = await open(silent(sourceOf(other)), known)
  for (const n of numbersTo(5)) {
    const position = await write(one, told(`${n}`))
    await projection.waitFor(position, soon())
    expect(known.ids.has(`${n}`)).toBe(true)
  }
})

test('without bus and pushes, a confirmed reader sees all that was written before', async () => {
  streams.bus.stop()
  const known = memory()
  const projection = await open(silent(sourceOf(other)), known)
  for (const n of numbersTo(5)) {
    await write(one, told(`${n}`))
    await Promise.all([projection.catchUp(soon()), projection.catchUp(soon())])
    expect(known.ids.has(`${n}`)).toBe(true)
  }
})

test('who joins while the owner is asked is served by the next look, all of them by one', async () => {
  const source = silent(sourceOf(one))
  let pulls = 0
  let release = (): void => undefined
  const held = new Promise<void>((resolve) => {
    release = resolve
  })
  const known = memory()
  const projection = await open(
    {
      ...source,
      async pull(position, signal) {
        const answer = await source.pull(position, signal, ['identities'])
        if (++pulls === 1) await held
        return answer
      },
    },
    known,
  )
  const first = projection.catchUp(soon())
  await until(() => pulls === 1)
  const position = await write(one, told('later'))
  const joined = [
    projection.waitFor(position, soon()),
    projection.catchUp(soon()),
    projection.catchUp(soon()),
  ]
  release()
  await Promise.all([first, ...joined])
  expect(pulls).toBe(2)
  expect(known.ids.has('later')).toBe(true)
})

test('a new timeline is loaded anew, and readers never see half of it', async () => {
  const known = memory()
  rows = numbersTo(1200).map((n) => `${n}`)
  const projection = await open(sourceOf(one), known)
  await streams.admin.query(sql`update stream set wal = '00000000'`)
  rows = numbersTo(1300).map((n) => `${n}`)
  const position = await write(other, told('1'))
  await projection.waitFor(position, soon())
  expect(known.loads).toBe(2)
  expect(known.ids.size).toBe(1300)
  expect(projection.position()?.timeline).toBe(position.timeline)
})

test('while it loads anew it stands nowhere, and whoever waits is answered at the end', async () => {
  const known = memory()
  let release = (): void => undefined
  const held = new Promise<void>((resolve) => {
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
          if (message.changes.length > 0 && ++loads === 2) await held
        }
      },
    },
    known,
  )
  const before = projection.position()
  await streams.admin.query(sql`update stream set wal = '00000000'`)
  const position = await write(other, told('after'))
  const reached = projection.waitFor(position, soon())
  await until(() => loads === 2)
  expect([projection.position(), projection.isFresh()]).toEqual([undefined, false])
  const waiting = before && projection.waitFor(before, soon())
  release()
  await Promise.all([reached, waiting])
  expect(projection.position()).toEqual(position)
})

test('a position of an older timeline is met by the head of the newer', async () => {
  const known = memory()
  const projection = await open(silent(sourceOf(one)), known)
  const old = { timeline: '00000000-0000-0000-0000-000000000000', number: 1_000_000 }
  await write(other, told('newer'))
  await projection.waitFor(old, soon())
  expect(known.ids.has('newer')).toBe(true)
})

test('who is too far behind loads anew', async () => {
  streams.bus.stop() // a hint would have it pull from the owner who still knows
  const known = memory()
  let owner = silent(sourceOf(one))
  await open(
    {
      schema: 'identity',
      load: (kinds, signal) => owner.load(kinds, signal),
      watch: (...about) => owner.watch(...about),
      pull: (...about) => owner.pull(...about),
      row: (...about) => owner.row(...about),
    },
    known,
  )
  const last = await write(other, ...numbersTo(5).map((n) => told(`${n}`)))
  await streams.admin.query(sql`delete from change where number <= ${last.number}`)
  rows.push('kept')
  owner = sourceOf(await streams.replica()) // the others still have them in memory
  const [projection] = projections
  await projection?.waitFor(await write(other, told('new')), soon())
  expect(known.ids).toContain('kept')
  expect(known.loads).toBe(2)
})

/** Refuses the change of this row when it says so. */
const refusing = (id: string, always: boolean) => {
  const known = memory()
  const unknown: string[] = []
  const isBad = (change: Change): boolean =>
    change.id === id && (always || JSON.parse(change.json.toString()).bad === true)
  return {
    ...known,
    unknown: (change: Change) => void unknown.push(change.id),
    notKnown: unknown,
    apply(changes: readonly Change[], upto: Position) {
      if (changes.some(isBad)) throw new Error('not understood')
      known.apply(changes, upto)
    },
    loads: () => known.loads,
  }
}

test('a change that the memory refuses is taken as its row is now, and no other waits for it', async () => {
  const known = refusing('bad', false)
  rows.push('bad')
  const projection = await open(sourceOf(one), known)
  known.ids.delete('bad')
  const position = await write(one, told('a'), told('bad', { bad: true }), told('b'))
  await projection.waitFor(position, soon())
  expect([...known.ids]).toEqual(['there before', 'a', 'bad', 'b'])
  expect([known.loads(), known.notKnown]).toEqual([1, []])
})

test('a row that the memory refuses however it comes is unknown to it, and no other waits for it', async () => {
  const known = refusing('bad', true)
  const projection = await open(sourceOf(one), known)
  rows.push('bad')
  const position = await write(one, told('a'), told('bad'), told('b'))
  await projection.waitFor(position, soon())
  expect([[...known.ids], known.notKnown, known.loads()]).toEqual([['there before', 'a', 'b'], ['bad'], 1])
})

test('while the owner is away, a change that the memory refuses is not given up', async () => {
  const known = refusing('bad', false)
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
    known,
  )
  const position = await write(one, told('bad', { bad: true }), told('b'))
  await projection.waitFor(position, soon())
  expect([known.ids.has('bad'), known.ids.has('b'), known.notKnown]).toEqual([true, true, []])
})

test('a message that repeats or skips changes does no harm', async () => {
  const source = sourceOf(one)
  const known = memory()
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
      async *watch(position, signal) {
        for await (const message of source.watch(position, signal, 0, ['identities'])) {
          yield calls++ === 1 ? skipping(message) : message
          yield message
        }
      },
    },
    known,
  )
  for (const n of numbersTo(5)) await write(one, told(`${n}`))
  await projection.waitFor(after(from, 5), soon())
  expect(known.applied.map(({ number }) => number)).toEqual(numbersTo(from.number + 5, from.number + 1))
})

test('an owner of an earlier release, which tells changes of all kinds, is followed too', async () => {
  const source = sourceOf(one)
  const earlier = (message: Changes): Changes => ({ ...message, after: undefined, ageMs: 0 })
  const known = memory()
  let calls = 0
  const projection = await open(
    {
      ...source,
      async *watch(position, signal, gatherMs) {
        for await (const message of source.watch(position, signal, gatherMs, [])) {
          const told = earlier(message)
          yield message.changes.length > 1 && calls++ === 0
            ? { ...told, changes: told.changes.slice(1) }
            : told
        }
      },
      pull: async (position, signal) => earlier(await source.pull(position, signal, [])),
    },
    known,
  )
  const position = await write(one, told('a'), { ...told('x'), kind: 'others' }, told('b'))
  await projection.waitFor(position, soon())
  expect(known.applied.map(({ id }) => id)).toEqual(['a', 'b'])
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

test('in the background it opens before its owner answers, and waits for nobody', async () => {
  const source = sourceOf(one)
  let refusals = 0
  const known = memory()
  const projection = await openProjection(
    {
      ...source,
      load(kinds, signal) {
        if (refusals++ === 0) throw new Error('not yet')
        return source.load(kinds, signal)
      },
    },
    known,
    { bus: streams.bus, log, loaded: 'background' },
  )
  projections.push(projection)
  expect([projection.position(), projection.isFresh()]).toEqual([undefined, false])
  await projection.catchUp(soon())
  expect([...known.ids]).toEqual(['there before'])
})

import { type Change, Fault } from '@overlay/rpc'
import sql from 'sql-template-tag'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import type { ChangeLog } from '../src/change-log/change-log.js'
import { type Consumer, consumedPosition, startConsumer } from '../src/change-log/consumer.js'
import type { Effects } from '../src/change-log/effects.js'
import { localSource } from '../src/change-log/local-source.js'
import type { Source } from '../src/change-log/source.js'
import type { Tx } from '../src/postgres/database.js'
import { countOf, log, numbersTo, openStreams, rowChange, type Streams, until, write } from './streams.js'

let streams: Streams
let changeLog: ChangeLog
let source: Source
let following: Consumer[] = []
beforeAll(async () => {
  streams = await openStreams()
  await streams.admin.query(sql`
    create table sessions.effect (id bigint generated always as identity, number bigint, entity_id text)`)
})
beforeEach(async () => {
  changeLog = await streams.replica()
  source = localSource(changeLog, { identities: rows })
})
afterEach(async () => {
  for (const one of following) await one[Symbol.asyncDispose]()
  following = []
  await streams.close()
  await streams.admin.query(sql`truncate sessions.effect, sessions.followed`)
})
afterAll(() => streams[Symbol.asyncDispose]())

async function* rows(ids?: readonly string[]) {
  for (const id of ids ?? ['there before']) yield { id, json: { id } }
}

/** Stores the changes in the transaction that applies them. */
const noting = (before: (changes: readonly Change[]) => Promise<void> = async () => undefined): Effects => ({
  kinds: ['identities'],
  async apply(tx, changes) {
    await note(tx, changes)
    await before(changes)
    return []
  },
  async reload(tx, rows) {
    await tx.query(sql`delete from effect`)
    for await (const page of rows.pages('identities')) await note(tx, page)
    return []
  },
})
const note = async (tx: Tx, changes: readonly Change[]): Promise<void> => {
  for (const { number, id } of changes)
    await tx.query(sql`insert into effect (number, entity_id) values (${number}, ${id})`)
}
const start = async (effects: Effects): Promise<Consumer> => {
  const one = startConsumer(await streams.replica('sessions'), source, effects, log)
  following.push(one)
  return one
}
const noted = async (): Promise<readonly number[]> => {
  const { rows } = await streams.admin.query<{ number: number }>(
    sql`select number from sessions.effect order by id`,
  )
  return rows.map(({ number }) => number)
}
/** Transactions wait for locks on rows, which belong to no database, so the backends are counted. */
const waiting = sql`pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`
const timeout = () => AbortSignal.timeout(30_000)

test('the first start loads all rows, then every change takes effect once and in order', async () => {
  const one = await start(noting())
  await one.waitFor(await changeLog.head(), timeout())
  expect(await noted()).toEqual([0])
  const last = await write(
    changeLog,
    rowChange('a'),
    { ...rowChange('b'), kind: 'others' },
    rowChange('c', null),
  )
  await one.waitFor(last, timeout())
  expect(await noted()).toEqual([0, last.number - 2, last.number])
})

test('a load of any number of rows takes effect in pages, and nothing of it stays', async () => {
  const ids = numbersTo(1201).map((n) => `${n}`.padStart(5, '0'))
  source = localSource(changeLog, {
    async *identities() {
      for (const id of ids) yield { id, json: { id } }
    },
  })
  const pages: number[] = []
  const one = await start({
    ...noting(),
    async reload(tx, rows) {
      for await (const page of rows.pages('identities')) {
        pages.push(page.length)
        await note(tx, page)
      }
      await tx.query(sql`delete from effect where entity_id not in (${rows.ids('identities')})`)
      return []
    },
  })
  await one.waitFor(await changeLog.head(), timeout())
  expect([await noted(), pages]).toEqual([ids.map(() => 0), [500, 500, 201]])
  expect(await countOf(streams.admin, sql`sessions.loaded_row`)).toBe(0)
})

test('what a crash interrupts is repeated whole, and nothing else', async () => {
  let crashes = 3
  const one = await start(
    noting(async () => {
      if (crashes-- > 0) throw new Error('crash')
    }),
  )
  const from = await changeLog.head()
  await one.waitFor(from, timeout())
  await Promise.all(numbersTo(20).map((n) => write(changeLog, rowChange(`${n}`))))
  await one.waitFor({ ...from, number: from.number + 20 }, timeout())
  expect(await noted()).toEqual([0, ...numbersTo(from.number + 20, from.number + 1)])
})

test('several replicas share the work: each change takes effect once', async () => {
  const replicas = await Promise.all(numbersTo(3).map(() => start(noting())))
  const from = await changeLog.head()
  for (const one of replicas) await one.waitFor(from, timeout())
  expect(await noted()).toEqual([0])
  await Promise.all(numbersTo(50).map((n) => write(changeLog, rowChange(`${n}`))))
  await Promise.all(replicas.map((one) => one.waitFor({ ...from, number: from.number + 50 }, timeout())))
  expect(await noted()).toEqual([0, ...numbersTo(from.number + 50, from.number + 1)])
})

test('a restart goes on where it was', async () => {
  const first = await start(noting())
  await first.waitFor(await changeLog.head(), timeout())
  await first[Symbol.asyncDispose]()
  const last = await write(changeLog, rowChange('meanwhile'))
  const second = await start(noting())
  await second.waitFor(last, timeout())
  expect(await noted()).toEqual([0, last.number])
})

test('a new timeline is reloaded by one replica', async () => {
  const replicas = await Promise.all(numbersTo(2).map(() => start(noting())))
  for (const one of replicas) await one.waitFor(await changeLog.head(), timeout())
  await streams.admin.query(sql`update stream set wal = '00000000'`)
  const last = await write(changeLog, rowChange('after'))
  await Promise.all(replicas.map((one) => one.waitFor(last, timeout())))
  expect((await noted())[0]).toBe(0)
  const { rows } = await streams.admin.query(sql`select timeline from sessions.followed`)
  expect(rows).toEqual([{ timeline: last.timeline }])
  expect(await countOf(streams.admin, sql`sessions.effect where number = 0`)).toBe(1)
})

test('row changes of the effects are appended to our own change log', async () => {
  const one = await start({
    ...noting(),
    apply: async (_tx, changes) => changes.map(({ id }) => ({ ...rowChange(id), kind: 'sessions' })),
  })
  const ours = await streams.replica('sessions')
  const from = await ours.head()
  await one.waitFor(await changeLog.head(), timeout())
  await one.waitFor(await write(changeLog, rowChange('a')), timeout())
  const { changes } = await ours.pull(from)
  expect(changes).toMatchObject([{ kind: 'sessions', id: 'a' }])
})

test('effects see the writes of a transaction that held the row for share', async () => {
  const one = await start(noting())
  await one.waitFor(await changeLog.head(), timeout())
  const db = streams.open('sessions')
  let reached: Promise<void> | undefined
  await db.transaction(undefined, async (tx) => {
    await tx.query(sql`select from followed where schema = 'identity' for share`)
    reached = one.waitFor(await write(changeLog, rowChange('revoked')), timeout())
    await until(async () => (await countOf(streams.admin, waiting)) > 0)
    await note(tx, [{ kind: '', id: 'session', json: Buffer.alloc(0), atMs: 0, number: -1 }])
  })
  await reached
  expect((await noted()).slice(0, 2)).toEqual([0, -1])
})

test('a change without effects takes no transaction, and the next one with effects is not missed', async () => {
  const effects: Effects = { ...noting(), concerns: ({ id }) => id !== 'nothing' }
  const start = async (): Promise<Consumer> => {
    const one = startConsumer(await streams.replica('sessions'), source, effects, log, { idleSaveMs: 60_000 })
    following.push(one)
    return one
  }
  const one = await start()
  const from = await changeLog.head()
  await one.waitFor(from, timeout())
  const passed = await write(changeLog, rowChange('nothing'))
  await one.waitFor(passed, timeout())
  expect(await consumedPosition(streams.open('sessions'), 'identity')).toEqual(from)
  const last = await write(changeLog, rowChange('something'))
  await (await start()).waitFor(last, timeout())
  expect(await noted()).toEqual([0, last.number])
  expect(await consumedPosition(streams.open('sessions'), 'identity')).toEqual(last)
})

test('waiting ends with its signal', async () => {
  const one = await start(noting())
  const head = await changeLog.head()
  const abort = new AbortController()
  const waiting = one.waitFor({ ...head, number: head.number + 1000 }, abort.signal)
  abort.abort()
  await expect(waiting).rejects.toMatchObject({ code: 'TIMEOUT' })
})

const isBad = ({ json }: Change): boolean => json.length > 0 && JSON.parse(json.toString()).bad === true

test('a change that fails again and again while others pass is taken as its row is now', async () => {
  const one = await start(
    noting(async (changes) => {
      if (changes.some(isBad)) throw new Error('not understood')
    }),
  )
  const from = await changeLog.head()
  await one.waitFor(from, timeout())
  await streams.admin.query(sql`truncate sessions.effect`)
  const last = await write(changeLog, rowChange('a'), rowChange('bad', { bad: true }), rowChange('b'))
  await one.waitFor(last, timeout())
  expect(await noted()).toEqual(numbersTo(last.number, from.number + 1))
})

test('a row that cannot be had is unknown, and others take effect', async () => {
  const unknown: string[] = []
  const one = await start({
    ...noting(async (changes) => {
      if (changes.some(({ id }) => id === 'bad')) throw new Error('not understood')
    }),
    async unknown(_tx, { id }) {
      unknown.push(id)
      return []
    },
    reload: async () => [],
  })
  await one.waitFor(await changeLog.head(), timeout())
  const last = await write(changeLog, rowChange('a'), rowChange('bad'), rowChange('b'))
  await one.waitFor(last, timeout())
  expect([await noted(), unknown]).toEqual([[last.number - 2, last.number], ['bad']])
})

test('while nothing passes, no change is passed over', async () => {
  let failures = 0
  const one = await start({
    ...noting(async () => {
      if (failures++ < 12) throw new Error('all is wrong')
    }),
    reload: async () => [],
  })
  const from = await changeLog.head()
  await one.waitFor(from, timeout())
  const last = await write(changeLog, rowChange('a'), rowChange('b'))
  await one.waitFor(last, timeout())
  expect(await noted()).toEqual(numbersTo(last.number, from.number + 1))
})

test('a change that fails because another service is unavailable is not skipped, however often', async () => {
  let failures = 0
  const one = await start({
    ...noting(async (changes) => {
      if (changes.some(isBad) && failures++ < 6) throw new Fault('UNAVAILABLE')
    }),
    reload: async () => [],
  })
  const from = await changeLog.head()
  await one.waitFor(from, timeout())
  await one.waitFor(await write(changeLog, rowChange('a')), timeout())
  const last = await write(changeLog, rowChange('bad', { bad: true }), rowChange('b'))
  await one.waitFor(last, timeout())
  expect([failures, await noted()]).toEqual([7, numbersTo(last.number, from.number + 1)])
})

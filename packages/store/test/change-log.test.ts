import type { Changes, Context, Position } from '@overlay/rpc'
import sql from 'sql-template-tag'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { batchInserter } from '../src/change-log/batch-inserter.js'
import { openChangeLog, type RowChange } from '../src/change-log/change-log.js'
import { pruneChanges } from '../src/change-log/prune.js'
import type { Database } from '../src/postgres/database.js'
import {
  collect,
  context,
  countOf,
  log,
  numbersTo,
  openStreams,
  rowChange,
  type Streams,
  write,
  writeAll,
} from './streams.js'

let streams: Streams
beforeAll(async () => {
  streams = await openStreams()
})
afterEach(() => streams.close())
afterAll(() => streams[Symbol.asyncDispose]())

const stop = () => new AbortController()
const plus = ({ timeline, number }: Position, count: number): Position => ({
  timeline,
  number: number + count,
})

test('positions are dense, whichever replica writes, and whatever fails between', async () => {
  const replicas = [await streams.replica(), await streams.replica()]
  const writer = async (changeLog: (typeof replicas)[number], name: string) => {
    const positions = []
    for (let turn = 0; turn < 10; turn++) {
      positions.push(await write(changeLog, rowChange(`${name}${turn}`), rowChange(`${name}${turn}b`)))
      const failing = changeLog.write(context(), async (tx) => {
        await tx.query(sql`select pg_sleep(0)`)
        return { result: 0, changes: [rowChange('x', { id: '\u0000' })] } // not for jsonb: the append itself fails
      })
      await expect(failing).rejects.toThrow()
    }
    return positions
  }
  const { number: before = 0 } = (await replicas[0]?.head()) ?? {}
  const positions = await Promise.all(
    numbersTo(8).flatMap((n) => replicas.map((changeLog, at) => writer(changeLog, `${at}-${n}-`))),
  )
  const numbers = positions.flat().map(({ number }) => number)
  expect(numbers.sort((a, b) => a - b)).toEqual(numbersTo(160).map((n) => before + 2 * n))
  const { rows } = await streams.admin.query(
    sql`select max(number) as last, count(*) from change where number > ${before}`,
  )
  expect(rows).toEqual([{ last: before + 320, count: 320 }])
})

test('a failed write leaves no row, no audit, no change and no gap', async () => {
  const changeLog = await streams.replica()
  const before = await changeLog.head()
  const failing = changeLog.write({ ...context(), requestId: 'failing' }, async (tx) => {
    await tx.query(sql`insert into followed (schema) values ('left behind')`)
    throw new Error('second thoughts')
  })
  await expect(failing).rejects.toThrow('second thoughts')
  expect(await write(changeLog, rowChange('a'))).toEqual(plus(before, 1))
  expect(await countOf(streams.admin, sql`followed`)).toBe(0)
  expect(await countOf(streams.admin, sql`audit where request_id = 'failing'`)).toBe(0)
})

test('a write is audited whole; only what is followed becomes a change and takes a position', async () => {
  const changeLog = await streams.replica()
  const { number: last } = await changeLog.head()
  const { position } = await changeLog.write({ ...context(), requestId: 'r1' }, async () => ({
    result: undefined,
    changes: [
      { kind: 'secrets', id: 's', before: null, after: { a: 1 } },
      { kind: 'identities', id: 'i', before: { b: 1 }, after: { b: 2 }, payload: { b: 2, hidden: true } },
      { kind: 'identities', id: 'j', before: { c: 1 }, after: null, payload: null },
    ],
  }))
  expect(position?.number).toBe(last + 2)
  const audit = await streams.admin.query(
    sql`select number, request_id, kind, entity_id as id, before, after from audit where request_id = 'r1' order by audit.id`,
  )
  expect(audit.rows).toEqual([
    { number: null, request_id: 'r1', kind: 'secrets', id: 's', before: null, after: { a: 1 } },
    { number: last + 1, request_id: 'r1', kind: 'identities', id: 'i', before: { b: 1 }, after: { b: 2 } },
    { number: last + 2, request_id: 'r1', kind: 'identities', id: 'j', before: { c: 1 }, after: null },
  ])
  const changes = await streams.admin.query(
    sql`select number, entity_id as id, entity from change where number > ${last} order by 1`,
  )
  expect(changes.rows).toEqual([
    { number: last + 1, id: 'i', entity: { b: 2, hidden: true } },
    { number: last + 2, id: 'j', entity: null },
  ])
})

test('a write of any number of changes reaches followers completely', async () => {
  const [one, other] = [await streams.replica(), await streams.replica()]
  const from = await one.head()
  const count = 150_000 // more than a call has room for arguments
  const last = await writeAll(
    one,
    numbersTo(count).map((n) => rowChange(`${n}`)),
  )
  expect(last).toEqual(plus(from, count))
  const received = await collect(other.watch(plus(last, -1000), stop().signal), last)
  expect(received.map(({ id }) => id)).toEqual(numbersTo(count, count - 999).map((n) => `${n}`))
})

const tooLarge = {
  code: 'COULD_NOT_VALIDATE',
  detail: expect.stringMatching(/^identities big would take \d+ bytes/),
}

test.each([
  ['its text is', { text: 'x'.repeat(4 * 1024 * 1024) }],
  ['its numbers are, written out', { numbers: Array(14_000).fill(1e308) }],
])(
  'a row that fits no message because %s too long is refused, and with it the whole write',
  async (_, row) => {
    const changeLog = await streams.replica()
    const before = await changeLog.head()
    const writing = changeLog.write({ ...context(), requestId: 'too large' }, async (tx) => {
      await tx.query(sql`insert into followed (schema) values ('left behind')`)
      return { result: undefined, changes: [rowChange('small'), rowChange('big', row)] }
    })
    await expect(writing).rejects.toMatchObject(tooLarge)
    expect(await changeLog.head()).toEqual(before)
    expect(await countOf(streams.admin, sql`followed`)).toBe(0)
    expect(await countOf(streams.admin, sql`audit where request_id = 'too large'`)).toBe(0)
  },
)

test('a row as large as it may be arrives', async () => {
  const [one, other] = [await streams.replica(), await streams.replica()]
  const from = await other.head()
  const last = await write(one, rowChange('large', { text: 'x'.repeat(4 * 1024 * 1024 - 100) }))
  const [change] = await collect(other.watch(from, stop().signal), last)
  expect(change?.json.length).toBeGreaterThan(4 * 1024 * 1024 - 100)
})

test('of rows that are inserted together only the one that fits no message is refused', async () => {
  const changeLog = await streams.replica()
  await streams.admin.query(
    sql`create table identity.thing (id text primary key, created_at timestamptz default now())`,
  )
  await streams.admin.query(sql`grant insert, select on identity.thing to public`)
  const create = batchInserter(
    changeLog,
    'identities',
    (list) =>
      sql`insert into thing (id) select id from jsonb_to_recordset(${list}::jsonb) as entry (id text)`,
  )
  const insert = (id: string, row: object) =>
    create({ id, columns: { id }, plain: { id, ...row }, by: { ...context(), requestId: id } })
  const outcomes = await Promise.allSettled([
    insert('a', {}),
    insert('big', { text: 'x'.repeat(5e6) }),
    insert('b', {}),
  ])
  expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
})

test('the audit has the author of a change with its name and address', async () => {
  const changeLog = await streams.replica()
  const author = (requestId: string): Context => ({
    ...context(),
    requestId,
    sourceAddress: '192.0.2.7',
    caller: { ...context().caller, identityId: 'a1', identityName: 'root' },
  })
  const change = { kind: 'secrets', id: 's', before: null, after: {} }
  const write = (requestId: string, row: RowChange): Promise<unknown> =>
    changeLog.write(author(requestId), async () => ({ result: undefined, changes: [row] }))
  await write('author-1', change)
  await write('author-2', { ...change, payload: {} })
  await streams.admin.query(
    sql`create table identity.signed_thing (id text primary key, created_at timestamptz default now())`,
  )
  await streams.admin.query(sql`grant insert, select on identity.signed_thing to public`)
  const create = batchInserter(
    changeLog,
    'identities',
    (list) =>
      sql`insert into signed_thing (id) select id from jsonb_to_recordset(${list}::jsonb) as entry (id text)`,
  )
  await create({ id: 't', columns: { id: 't' }, plain: { id: 't' }, by: author('author-3') })
  const { rows } = await streams.admin.query(sql`
    select request_id, identity_id, identity_name, source_address from audit
     where request_id like 'author-%' order by id`)
  expect(rows).toEqual(
    [1, 2, 3].map((n) => ({
      request_id: `author-${n}`,
      identity_id: 'a1',
      identity_name: 'root',
      source_address: '192.0.2.7',
    })),
  )
})

test('a write of kinds that are not followed waits for no other writer', async () => {
  const changeLog = await streams.replica()
  await streams.admin.transaction(undefined, async (tx) => {
    await tx.query(sql`select from stream for update`)
    const { position } = await changeLog.write(context(), async () => ({
      result: undefined,
      changes: [{ kind: 'secrets', id: 's', before: null, after: {} }],
    }))
    expect(position).toBeUndefined()
  })
})

test.each(['with', 'without'])(
  'watch tells every change once and in order, %s notifications',
  async (notifications) => {
    const [one, other] = [await streams.replica(), await streams.replica()]
    const from = await one.head()
    if (notifications === 'without') streams.bus.stop()
    const end = plus(from, 200)
    const watching = [one, other].map((changeLog) => collect(changeLog.watch(from, stop().signal), end))
    await Promise.all(
      numbersTo(100).map((n) =>
        write(n % 2 ? one : other, rowChange(`a${n}`), rowChange(`b${n}`, n % 3 ? { n } : null)),
      ),
    )
    const [received, alsoReceived] = await Promise.all(watching)
    expect(received?.map(({ number }) => number)).toEqual(numbersTo(200).map((n) => from.number + n))
    const plain = (changes: typeof received) =>
      changes?.map(({ id, json, atMs }) => [id, json.length > 0 ? JSON.parse(json.toString()) : null, atMs])
    expect(plain(alsoReceived)).toEqual(plain(received))
  },
)

test('a watcher with a gather time gets the first change at once, and then many in one message', async () => {
  const changeLog = await streams.replica()
  const from = await changeLog.head()
  const messages = changeLog.watch(from, stop().signal, { gatherMs: 200 })[Symbol.asyncIterator]()
  const next = async () => (await messages.next()).value?.changes.length
  expect(await next()).toBe(0)
  const first = next()
  await write(changeLog, rowChange('a'))
  expect(await first).toBe(1)
  for (const n of numbersTo(20)) await write(changeLog, rowChange(`${n}`))
  let [received, count] = [0, 0]
  for (; received < 20; count++) received += await next()
  expect(count).toBeLessThan(20)
})

test('a watcher gathers no longer once a row is deleted', async () => {
  const changeLog = await streams.replica()
  const gatherMs = 600_000 // longer than the test may take
  const watching = changeLog.watch(await changeLog.head(), stop().signal, { gatherMs, kinds: ['identities'] })
  const messages = watching[Symbol.asyncIterator]()
  await messages.next()
  const first = messages.next()
  await write(changeLog, rowChange('a'))
  await first
  const second = messages.next()
  await write(changeLog, rowChange('b'), { ...rowChange('of another kind', null), kind: 'services' })
  await write(changeLog, rowChange('a', null))
  expect((await second).value?.changes.map(({ id }: { id: string }) => id)).toEqual(['b', 'a'])
})

test('a watcher that reads slowly misses nothing and delays no other', async () => {
  const changeLog = await streams.replica()
  const from = await changeLog.head()
  const slow = changeLog.watch(from, stop().signal)[Symbol.asyncIterator]()
  await slow.next()
  let last = from
  for (const block of numbersTo(6))
    last = await write(changeLog, ...numbersTo(700).map((n) => rowChange(`${block}-${n}`)))
  const received = await collect({ [Symbol.asyncIterator]: () => slow }, last)
  expect(received.map(({ number }) => number)).toEqual(numbersTo(4200).map((n) => from.number + n))
})

test('a watch without changes says each second how far it is', async () => {
  const changeLog = await streams.replica()
  const position = await write(changeLog, rowChange('a'))
  const abort = stop()
  const messages = changeLog.watch(position, abort.signal)[Symbol.asyncIterator]()
  for (let turn = 0; turn < 2; turn++)
    expect((await messages.next()).value).toMatchObject({ upto: position, changes: [], more: false })
  abort.abort()
  expect((await messages.next()).done).toBe(true)
})

test('a heartbeat follows a poll of the database, also while the bus claims to be there', async () => {
  const db = streams.open('identity')
  let polls = 0
  const counting: Database = {
    ...db,
    query(query, name) {
      if (name === 'read-changes') polls += 1
      return db.query(query, name)
    },
  }
  await using changeLog = await openChangeLog(counting, streams.bus, log)
  const abort = stop()
  const messages = changeLog.watch(await changeLog.head(), abort.signal)[Symbol.asyncIterator]()
  await messages.next()
  for (let turn = 0; turn < 2; turn++) {
    const before = polls
    expect((await messages.next()).value?.changes).toEqual([])
    expect(polls).toBeGreaterThan(before)
  }
  abort.abort()
})

test('a watcher of some kinds gets only their changes, and the positions of all', async () => {
  const changeLog = await streams.replica()
  const from = await changeLog.head()
  const kinds = ['watched']
  const last = await writeAll(
    changeLog,
    numbersTo(1300).map((n) => ({ ...rowChange(`${n}`), kind: n % 100 ? 'others' : 'watched' })),
  )
  const received: string[] = []
  const messages: Changes[] = []
  for await (const message of changeLog.watch(from, stop().signal, { kinds })) {
    messages.push(message)
    for (const { id } of message.changes) received.push(id)
    if (message.upto?.number === last.number) break
  }
  expect(received).toEqual(numbersTo(13).map((n) => `${n * 100}`))
  const begins = messages.map(({ after }) => after)
  const ends = messages.map(({ upto }) => upto)
  expect(begins).toEqual([from, ...ends.slice(0, -1)]) // without gaps
  const { changes, upto, after } = await changeLog.pull(plus(last, -150), { kinds })
  expect([changes.map(({ id }) => id), after, upto]).toEqual([['1200', '1300'], plus(last, -150), last])
})

test('changes of other kinds share messages that only move the position', async () => {
  const changeLog = await streams.replica()
  const abort = stop()
  const watched = changeLog.watch(await changeLog.head(), abort.signal, { kinds: ['watched'] })
  const messages: Changes[] = []
  const reading = (async () => {
    for await (const message of watched) {
      messages.push(message)
      if (message.changes.length > 0) break
    }
  })()
  for (const n of numbersTo(40)) await write(changeLog, { ...rowChange(`${n}`), kind: 'others' })
  await write(changeLog, { ...rowChange('1'), kind: 'watched' })
  await reading
  expect(messages.length).toBeLessThan(40)
})

test('a watch ends at once when it is aborted', async () => {
  const changeLog = await streams.replica()
  const abort = stop()
  const messages = changeLog.watch(await changeLog.head(), abort.signal)[Symbol.asyncIterator]()
  await messages.next()
  const next = messages.next()
  abort.abort()
  expect((await next).done).toBe(true)
})

test('a position of another timeline, ahead of the head, or no longer kept is out of range', async () => {
  const changeLog = await streams.replica()
  const last = await write(changeLog, ...numbersTo(10).map((n) => rowChange(`${n}`)))
  const refused = (after: Position) =>
    expect(collect(changeLog.watch(after, stop().signal), last)).rejects.toMatchObject({
      code: 'OUT_OF_RANGE',
    })
  await refused({ ...last, timeline: '00000000-0000-0000-0000-000000000000' })
  await refused(plus(last, 1))
  await streams.admin.query(
    sql`update change set at = now() - interval '25 hours' where number <= ${last.number - 6}`,
  )
  expect(await pruneChanges(changeLog.db, 24 * 3_600_000)).toBeGreaterThanOrEqual(4)
  const fresh = await streams.replica() // the other one still has them in memory
  await expect(collect(fresh.watch(plus(last, -7), stop().signal), last)).rejects.toMatchObject({
    code: 'OUT_OF_RANGE',
  })
  const kept = await collect(fresh.watch(plus(last, -6), stop().signal), last)
  expect(kept.map(({ number }) => number)).toEqual(numbersTo(last.number, last.number - 5))
})

test('what is kept stays dense, even when clocks went backwards', async () => {
  const changeLog = await streams.replica()
  const { number } = await write(changeLog, ...numbersTo(6).map((n) => rowChange(`${n}`)))
  await streams.admin.query(sql`delete from change where number <= ${number - 6}`)
  await streams.admin.query(sql`
    update change set at = now() - interval '25 hours' where number not in (${number - 3}, ${number})`)
  expect(await pruneChanges(changeLog.db, 24 * 3_600_000)).toBe(2)
})

test('a listener runs when the end has moved, whichever replica has written, until it is disposed', async () => {
  const [one, other] = [await streams.replica(), await streams.replica()]
  let moves = 0
  const listening = one.onMove(() => moves++)
  await write(one, rowChange('a'))
  expect(moves).toBe(1)
  await write(other, rowChange('b'))
  await one.head()
  expect(moves).toBe(2)
  listening[Symbol.dispose]()
  await write(one, rowChange('c'))
  expect(moves).toBe(2)
})

test('the head is read after the call', async () => {
  const [one, other] = [await streams.replica(), await streams.replica()]
  streams.bus.stop()
  for (const _ of numbersTo(5)) {
    const written = await write(one, rowChange('a'))
    const [head, again] = await Promise.all([other.head(), other.head()])
    expect([head, again]).toEqual([written, written])
  }
})

test('a database that is a copy or a restored backup begins a new timeline', async () => {
  const before = await write(await streams.replica(), rowChange('a'))
  await streams.admin.query(sql`update stream set origin = 'another one'`)
  const restarted = await streams.replica()
  const head = await restarted.head()
  expect(head).toEqual({ timeline: expect.not.stringMatching(before.timeline), number: before.number })
  expect(await (await streams.replica()).head()).toEqual(head) // a restart alone begins none
})

test('a failover begins a new timeline with the next write, and watchers of the old one hear of it', async () => {
  const [one, other] = [await streams.replica(), await streams.replica()]
  const before = await write(one, rowChange('a'))
  const watching = Promise.allSettled(
    [one, other].map((changeLog) =>
      collect(changeLog.watch(before, stop().signal), { ...before, number: Number.POSITIVE_INFINITY }),
    ),
  )
  await streams.admin.query(sql`update stream set wal = '00000000'`)
  const after = await write(one, rowChange('b'))
  expect(after).toEqual({ timeline: expect.not.stringMatching(before.timeline), number: before.number + 1 })
  const refused = { status: 'rejected', reason: expect.objectContaining({ code: 'OUT_OF_RANGE' }) }
  expect(await watching).toEqual([refused, refused])
  expect(await write(other, rowChange('c'))).toEqual(plus(after, 1))
})

test('changes of statements that append by themselves reach watchers too', async () => {
  const [one, other] = [await streams.replica(), await streams.replica()]
  const from = await one.head()
  const watching = [one, other].map((changeLog) =>
    collect(changeLog.watch(from, stop().signal), plus(from, 1)),
  )
  const { rows } = await one.db.query<Position & { at: Date }>(sql`
    with head as materialized (select * from advance(1)),
         changed as (
         insert into change (number, kind, entity_id, entity, at) select number, 'identities', 'hot', '{}', at from head)
    select * from head`)
  for (const { at, ...position } of rows)
    one.appended(position, [
      { kind: 'identities', id: 'hot', json: Buffer.from('{}'), atMs: at.getTime(), number: position.number },
    ])
  const [received, alsoReceived] = await Promise.all(watching)
  expect(received).toEqual(alsoReceived)
  expect(received).toMatchObject([{ id: 'hot', number: from.number + 1 }])
})

import type { Change } from '@overlay/rpc'
import sql from 'sql-template-tag'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Effects } from '../src/change-log/consumer.js'
import { idsByKind, lockEntities, momentOf, recordingDeletions } from '../src/change-log/deleted-entities.js'
import { withLoadedRows } from '../src/change-log/loaded-rows.js'
import type { Database } from '../src/postgres/database.js'
import { countOf, openStreams, type Streams, until } from './streams.js'

let streams: Streams
let db: Database
beforeAll(async () => {
  streams = await openStreams()
  db = streams.open('sessions')
})
afterAll(async () => {
  await streams.close()
  await streams[Symbol.asyncDispose]()
})

const upto = { timeline: '00000000-0000-4000-8000-000000000000', number: 1 }
const effects: Effects = { kinds: [], concerns: () => false, apply: async () => [], reload: async () => [] }
const follower = recordingDeletions('policy', ['services'], effects)
const gone = (id: string): Change => ({ kind: 'services', id, json: Buffer.alloc(0), atMs: 0, number: 1 })
const followed = (...ids: string[]) =>
  db.transaction(undefined, (tx) => follower.apply(tx, ids.map(gone), upto))
const named = (...ids: string[]) => idsByKind(ids.map((id) => ({ kind: 'services', id })))
const held = (id: string, moment?: string) =>
  db.transaction(undefined, async (tx) => [
    ...((await lockEntities(tx, named(id), moment)).get('services') ?? []),
  ])
const waiting = () =>
  countOf(
    streams.admin,
    sql`pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`,
  )

test('a follower takes deletions of the kinds that rows here may name, and no more than before', async () => {
  expect(follower.kinds).toEqual(['services'])
  expect(await follower.concerns?.(gone('a'))).toBe(true)
  expect(await follower.concerns?.({ ...gone('a'), kind: 'configs' })).toBe(false)
  expect(await follower.concerns?.({ ...gone('a'), json: Buffer.from('{}') })).toBe(false)
})

test('what was deleted after a look-up may not be named, what was deleted before it and exists again may', async () => {
  const before = await momentOf(db)
  expect(await held('w1', before)).toEqual([])
  await followed('w1', 'other')
  expect(await held('w1', before)).toEqual(['w1'])
  expect(await held('w2', before)).toEqual([])
  expect(await held('w1', await momentOf(db))).toEqual([])
  expect(await held('w1')).toEqual(['w1'])
})

test('a deletion is followed after the commit of a write that names the entity, and finds it', async () => {
  let following: Promise<unknown> | undefined
  let isOver = false
  await db.transaction(undefined, async (tx) => {
    expect((await lockEntities(tx, named('w3'), await momentOf(db))).size).toBe(0)
    following = followed('w3').then(() => {
      isOver = true
    })
    await until(async () => (await waiting()) === 1)
    expect(isOver).toBe(false)
  })
  await following
  expect(isOver).toBe(true)
})

test('a follower that waits comes before later writers', async () => {
  const order: string[] = []
  const later: Promise<unknown>[] = []
  await db.transaction(undefined, async (tx) => {
    await lockEntities(tx, named('w4'))
    later.push(followed('w4').then(() => order.push('follower')))
    await until(async () => (await waiting()) === 1)
    later.push(held('w4').then((ids) => order.push(`writer ${ids}`)))
    await until(async () => (await waiting()) === 2)
  })
  await Promise.all(later)
  expect(order.sort()).toEqual(['follower', 'writer w4'])
})

test('a look-up from before a reload is worth nothing', async () => {
  const before = await momentOf(db)
  await db.transaction(undefined, (tx) => withLoadedRows(tx, [], (rows) => follower.reload(tx, rows, upto)))
  await expect(held('w5', before)).rejects.toMatchObject({ code: 'UNAVAILABLE' })
  expect(await held('w5', await momentOf(db))).toEqual([])
})

test('an entity that a reload brings back is not deleted any more', async () => {
  await followed('w8', 'w9')
  const back = [{ ...gone('w8'), json: Buffer.from('{}') }]
  await db.transaction(undefined, (tx) =>
    withLoadedRows(tx, [back], (rows) => follower.reload(tx, rows, upto)),
  )
  expect([await held('w8'), await held('w9')]).toEqual([[], ['w9']])
})

test('deletions are forgotten when no write can be so old', async () => {
  await followed('w6')
  await db.query(sql`update deleted_entity set at = now() - interval '2 hours' where id = 'w6'`)
  await followed('w7')
  expect(await held('w6')).toEqual([])
  expect(await held('w7')).toEqual(['w7'])
})

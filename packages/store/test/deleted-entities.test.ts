import type { Change } from '@overlay/rpc'
import sql from 'sql-template-tag'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { idsByKind, lockEntities, momentOf, recordingDeletions } from '../src/change-log/deleted-entities.js'
import type { Effects } from '../src/change-log/effects.js'
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
const deletion = (id: string): Change => ({ kind: 'services', id, json: Buffer.alloc(0), atMs: 0, number: 1 })
const applyDeletions = (...ids: string[]) =>
  db.transaction(undefined, (tx) => follower.apply(tx, ids.map(deletion), upto))
const idsOf = (...ids: string[]) => idsByKind(ids.map((id) => ({ kind: 'services', id })))
const lockAndListDeleted = (id: string, moment?: string) =>
  db.transaction(undefined, async (tx) => [
    ...((await lockEntities(tx, idsOf(id), moment)).get('services') ?? []),
  ])
const waiting = () =>
  countOf(
    streams.admin,
    sql`pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`,
  )

test('a follower takes deletions of the kinds that rows here may name, and no more than before', async () => {
  expect(follower.kinds).toEqual(['services'])
  expect(await follower.concerns?.(deletion('a'))).toBe(true)
  expect(await follower.concerns?.({ ...deletion('a'), kind: 'configs' })).toBe(false)
  expect(await follower.concerns?.({ ...deletion('a'), json: Buffer.from('{}') })).toBe(false)
})

test('what was deleted after a look-up may not be named, what was deleted before it and exists again may', async () => {
  const before = await momentOf(db)
  expect(await lockAndListDeleted('w1', before)).toEqual([])
  await applyDeletions('w1', 'other')
  expect(await lockAndListDeleted('w1', before)).toEqual(['w1'])
  expect(await lockAndListDeleted('w2', before)).toEqual([])
  expect(await lockAndListDeleted('w1', await momentOf(db))).toEqual([])
  expect(await lockAndListDeleted('w1')).toEqual(['w1'])
})

test('a deletion is followed after the commit of a write that names the entity, and finds it', async () => {
  let following: Promise<unknown> | undefined
  let isOver = false
  await db.transaction(undefined, async (tx) => {
    expect((await lockEntities(tx, idsOf('w3'), await momentOf(db))).size).toBe(0)
    following = applyDeletions('w3').then(() => {
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
    await lockEntities(tx, idsOf('w4'))
    later.push(applyDeletions('w4').then(() => order.push('follower')))
    await until(async () => (await waiting()) === 1)
    later.push(lockAndListDeleted('w4').then((ids) => order.push(`writer ${ids}`)))
    await until(async () => (await waiting()) === 2)
  })
  await Promise.all(later)
  expect(order.sort()).toEqual(['follower', 'writer w4'])
})

test('a look-up from before a reload is worth nothing', async () => {
  const before = await momentOf(db)
  await db.transaction(undefined, (tx) => withLoadedRows(tx, [], (rows) => follower.reload(tx, rows, upto)))
  await expect(lockAndListDeleted('w5', before)).rejects.toMatchObject({ code: 'UNAVAILABLE' })
  expect(await lockAndListDeleted('w5', await momentOf(db))).toEqual([])
})

test('an entity that a reload brings back is not deleted any more', async () => {
  await applyDeletions('w8', 'w9')
  const back = [{ ...deletion('w8'), json: Buffer.from('{}') }]
  await db.transaction(undefined, (tx) =>
    withLoadedRows(tx, [back], (rows) => follower.reload(tx, rows, upto)),
  )
  expect([await lockAndListDeleted('w8'), await lockAndListDeleted('w9')]).toEqual([[], ['w9']])
})

test('deletions are forgotten when no write can be so old', async () => {
  await applyDeletions('w6')
  await db.query(sql`update deleted_entity set at = now() - interval '2 hours' where id = 'w6'`)
  await applyDeletions('w7')
  expect(await lockAndListDeleted('w6')).toEqual([])
  expect(await lockAndListDeleted('w7')).toEqual(['w7'])
})

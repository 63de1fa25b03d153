import { type TestDatabase, testDatabase } from '@overlay/launcher/testing'
import sql from 'sql-template-tag'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { isLocked, openAdvisoryLock, openLockConnection } from '../src/postgres/advisory-lock.js'
import { type Database, openDatabase } from '../src/postgres/database.js'

let database: TestDatabase
let db: Database
beforeAll(async () => {
  database = await testDatabase('identity')
  db = openDatabase(database.urlOf('identity'), 'identity')
})
afterAll(async () => {
  await db[Symbol.asyncDispose]()
  await database[Symbol.asyncDispose]()
})

const heldNow = async (name: string): Promise<boolean | undefined> => {
  const { rows } = await db.query<{ held: boolean }>(sql`select ${isLocked(sql`${name}::text`)} as held`)
  return rows[0]?.held
}

async function hold(name: string, beats?: Parameters<typeof openAdvisoryLock>[3]) {
  const held = await openAdvisoryLock(database.urlOf('identity'), 'identity', name, beats)
  onTestFinished(() => held[Symbol.asyncDispose]())
  return held
}

const lostOf = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => signal.addEventListener('abort', () => resolve()))

test('a name is held from the opening to the end', async () => {
  expect(await heldNow('a')).toBe(false)
  const held = await hold('a')
  expect(await heldNow('a')).toBe(true)
  expect(await heldNow('b')).toBe(false)
  await held.confirm()
  await held[Symbol.asyncDispose]()
  await expect.poll(() => heldNow('a')).toBe(false)
})

test('whoever loses the connection is told, and cannot confirm any more', async () => {
  const held = await hold('c')
  const lost = lostOf(held.lost)
  await using owner = openDatabase(database.ownerUrl, 'identity')
  await owner.query(
    sql`select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'identity job'`,
  )
  await lost
  await expect.poll(() => heldNow('c')).toBe(false)
  await expect(held.confirm()).rejects.toThrow('lost')
})

test.each(['outside a transaction', 'inside a transaction'])(
  'a holder of whom nothing is heard loses the name, %s',
  async (where) => {
    const held = await hold('d', { beatMs: 1_000_000, idleSessionMs: 100 })
    if (where === 'inside a transaction') await held.query(sql`begin`)
    await lostOf(held.lost)
    await expect.poll(() => heldNow('d')).toBe(false)
  },
)

test('a lock that another connection holds is taken when that connection ends', async () => {
  const open = () => openLockConnection(database.urlOf('identity'), 'identity')
  await using second = await open()
  {
    await using first = await open()
    expect(await first.tryLock('e')).toBe(true)
    expect(await second.tryLock('e')).toBe(false)
  }
  await expect.poll(() => second.tryLock('e')).toBe(true)
})

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

const isHeld = async (name: string): Promise<boolean | undefined> => {
  const { rows } = await db.query<{ held: boolean }>(sql`select ${isLocked(sql`${name}::text`)} as held`)
  return rows[0]?.held
}

async function openLock(name: string, beats?: Parameters<typeof openAdvisoryLock>[3]) {
  const lock = await openAdvisoryLock(database.urlOf('identity'), 'identity', name, beats)
  onTestFinished(() => lock[Symbol.asyncDispose]())
  return lock
}

const lostOf = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => signal.addEventListener('abort', () => resolve()))

test('a lock is held until it is disposed', async () => {
  expect(await isHeld('a')).toBe(false)
  const lock = await openLock('a')
  expect(await isHeld('a')).toBe(true)
  expect(await isHeld('b')).toBe(false)
  await lock.confirm()
  await lock[Symbol.asyncDispose]()
  await expect.poll(() => isHeld('a')).toBe(false)
})

test('a lost connection aborts the signal, and cannot be confirmed any more', async () => {
  const lock = await openLock('c')
  const lost = lostOf(lock.lost)
  await using owner = openDatabase(database.ownerUrl, 'identity')
  await owner.query(
    sql`
      select pg_terminate_backend(pid) from pg_stat_activity
       where application_name = 'identity job' and datname = current_database()`,
  )
  await lost
  await expect.poll(() => isHeld('c')).toBe(false)
  await expect(lock.confirm()).rejects.toThrow('lost')
})

test.each(['outside a transaction', 'inside a transaction'])(
  'a holder that is silent loses the lock, %s',
  async (where) => {
    const lock = await openLock('d', { beatMs: 1_000_000, idleSessionMs: 100 })
    if (where === 'inside a transaction') await lock.query(sql`begin`)
    await lostOf(lock.lost)
    await expect.poll(() => isHeld('d')).toBe(false)
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

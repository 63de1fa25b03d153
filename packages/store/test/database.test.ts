import { execFileSync } from 'node:child_process'
import { type TestDatabase, testDatabase } from '@overlay/launcher/testing'
import sql, { raw } from 'sql-template-tag'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import { type Database, type Db, onlyRow, openDatabase } from '../src/postgres/database.js'
import { countOf, until } from './streams.js'

let database: TestDatabase
let admin: Database
let db: Database
beforeAll(async () => {
  database = await testDatabase('policy')
  admin = openDatabase(database.ownerUrl, 'policy')
})
beforeEach(() => {
  db = openDatabase(database.urlOf('policy'), 'policy', { max: 2 })
})
afterEach(() => db[Symbol.asyncDispose]())
afterAll(async () => {
  await admin[Symbol.asyncDispose]()
  await database[Symbol.asyncDispose]()
})

/** Ends the connections of the service, as a restart does. */
const endOthers = sql`
    select pg_terminate_backend(pid) from pg_stat_activity
     where application_name = 'policy' and usename <> current_user and datname = current_database()`
const restart = () => admin.query(endOthers)
const sleepers = (): Promise<number> =>
  countOf(
    admin,
    sql`pg_stat_activity
     where state = 'active' and query like 'select pg_sleep(%' and datname = current_database()`,
  )
const inOwnDatabase = sql`database = (select oid from pg_database where datname = current_database())`
const deadlineIn = (ms: number) => new Date(Date.now() + ms)

test('the server interprets statements, as it would not by default', async () => {
  const { rows } = await db.query<{ name: string; set: string; preset: string }>(
    sql`select name, setting as set, boot_val as preset from pg_settings where name = 'jit'`,
  )
  expect(rows).toEqual([{ name: 'jit', set: 'off', preset: 'on' }])
})

test('connections are renewed while statements go on', async () => {
  await using young = openDatabase(database.urlOf('policy'), 'policy', { max: 2, connectionSeconds: 1 })
  const pids = new Set<number>()
  await until(async () => {
    const { rows } = await young.query<{ pid: number }>(sql`select pg_backend_pid() as pid`)
    return pids.add(onlyRow(rows).pid).size > 3
  })
})

test('what the administrator ends runs again on another connection, and a transaction from its beginning', async () => {
  await using holder = openDatabase(database.ownerUrl, 'policy')
  let begun = 0
  const lock = sql`select pg_advisory_xact_lock(7)`
  const { ended } = await holder.transaction(undefined, async (tx) => {
    await tx.query(lock)
    const waiters = () =>
      countOf(admin, sql`pg_locks where locktype = 'advisory' and not granted and ${inOwnDatabase}`)
    const ended = Promise.all([
      db.query(lock),
      db.transaction(undefined, async (tx) => {
        begun++
        await tx.query(lock)
      }),
    ])
    await until(async () => (await waiters()) === 2)
    await restart()
    await until(async () => begun === 2 && (await waiters()) === 2)
    return { ended }
  })
  await ended
  expect(begun).toBe(2)
})

test('a call whose connections are lost again and again is UNAVAILABLE, and the next call works', async () => {
  const lost = [
    db.query(sql`select pg_sleep(60)`),
    db.transaction(undefined, (tx) => tx.query(sql`select pg_sleep(60)`)),
  ]
  let isSettled = false
  const outcome = Promise.allSettled(lost).finally(() => {
    isSettled = true
  })
  await until(async () => (await sleepers()) === lost.length)
  await until(async () => {
    await restart()
    return isSettled
  })
  const unavailable = { status: 'rejected', reason: expect.objectContaining({ code: 'UNAVAILABLE' }) }
  expect(await outcome).toEqual([unavailable, unavailable])
  expect((await db.query(sql`select 1 as one`)).rows).toEqual([{ one: 1 }])
})

/** The same while this process can see nothing of it. */
function restartUnseen(): void {
  const program = `
    import pg from 'pg'
    const client = new pg.Client(process.argv[1])
    await client.connect()
    await client.query(process.argv[2])
    await client.end()`
  const statement = endOthers.text
  execFileSync(process.execPath, ['--input-type=module', '-e', program, database.ownerUrl, statement], {
    cwd: import.meta.dirname,
  })
}
const busy = () => Promise.all([db.query(sql`select pg_sleep(0.01)`), db.query(sql`select pg_sleep(0.01)`)])
const one = (tx: Db) => tx.query(sql`select 1 as one`)

test('a transaction replaces connections that ended while idle', async () => {
  await busy()
  restartUnseen()
  const begun = [db.transaction(undefined, one), db.transaction(undefined, one)]
  for (const { rows } of await Promise.all(begun)) expect(rows).toEqual([{ one: 1 }])
})

test('a query replaces connections that ended while idle', async () => {
  await busy()
  restartUnseen()
  for (const { rows } of await Promise.all([one(db), one(db)])) expect(rows).toEqual([{ one: 1 }])
})

test('a database that does not admit the role is UNAVAILABLE, until it does', async () => {
  const role = new URL(database.urlOf('policy')).username
  await admin.query(raw(`alter role ${role} nologin`))
  try {
    await expect(db.query(sql`select 1`)).rejects.toMatchObject({
      code: 'UNAVAILABLE',
      cause: { code: '28000' },
    })
    await expect(db.transaction(undefined, async () => 1)).rejects.toMatchObject({ code: 'UNAVAILABLE' })
  } finally {
    await admin.query(raw(`alter role ${role} login`))
  }
  await db.query(sql`select 1`)
})

test('a database that is not there is UNAVAILABLE', async () => {
  await using nowhere = openDatabase('postgres://nobody@127.0.0.1:1/nothing', 'policy')
  await expect(nowhere.query(sql`select 1`)).rejects.toMatchObject({ code: 'UNAVAILABLE' })
  await expect(nowhere.transaction(undefined, async () => 1)).rejects.toMatchObject({ code: 'UNAVAILABLE' })
})

test('a transaction ends at the deadline of its caller', async () => {
  const late = db.transaction(deadlineIn(100), (tx) => tx.query(sql`select pg_sleep(60)`))
  await expect(late).rejects.toMatchObject({ code: 'TIMEOUT' })
  const over = db.transaction(deadlineIn(-1), async () => 1)
  await expect(over).rejects.toMatchObject({ code: 'TIMEOUT' })
  expect((await db.query(sql`select 1 as one`)).rows).toEqual([{ one: 1 }])
})

test('a transaction that throws leaves nothing, and its connection is fit for the next', async () => {
  await using one = openDatabase(database.urlOf('policy'), 'policy', { max: 1 })
  const backend = async () =>
    onlyRow((await one.query<{ pid: number }>(sql`select pg_backend_pid() as pid`)).rows).pid
  const before = await backend()
  const twice = one.transaction(undefined, async (tx) => {
    await tx.query(sql`insert into followed (schema) values ('x')`)
    await tx.query(sql`insert into followed (schema) values ('x')`)
  })
  await expect(twice).rejects.toMatchObject({ code: '23505' })
  expect((await one.query(sql`select from followed`)).rowCount).toBe(0)
  expect(await backend()).toBe(before)
})

/** Transactions that are open, and what waits for an advisory lock. */
const open = () =>
  countOf(admin, sql`pg_stat_activity where state like 'idle in %' and datname = current_database()`)
const blocked = () =>
  countOf(
    admin,
    sql`pg_stat_activity
     where wait_event_type = 'Lock' and wait_event = 'advisory' and datname = current_database()`,
  )

test('work under an advisory lock has no transaction open, and excludes other work under the same lock', async () => {
  const order: string[] = []
  let second: Promise<unknown> | undefined
  await db.withAdvisoryLock("it's mine", async (connection) => {
    await connection.query(sql`insert into followed (schema) values ('locked')`)
    second = db.withAdvisoryLock("it's mine", async () => order.push('second'))
    await until(async () => (await blocked()) === 1)
    expect(await open()).toBe(0)
    await connection.transaction((tx) => tx.query(sql`delete from followed where schema = 'locked'`))
    order.push('first')
  })
  await second
  expect(order).toEqual(['first', 'second'])
})

test('work that throws gives its advisory lock back, and its connection is fit for the next', async () => {
  await using one = openDatabase(database.urlOf('policy'), 'policy', { max: 1 })
  const failing = one.withAdvisoryLock('x', (connection) => connection.query(sql`select 1 / 0`))
  await expect(failing).rejects.toMatchObject({ code: '22012' })
  expect(await countOf(admin, sql`pg_locks where locktype = 'advisory' and ${inOwnDatabase}`)).toBe(0)
  const { rows } = await one.query(sql`show idle_session_timeout`)
  expect(rows).toEqual([{ idle_session_timeout: '0' }])
})

test('work whose advisory lock is lost with its connection cannot write on it', async () => {
  const lost = db.withAdvisoryLock('x', async (connection) => {
    await restart()
    return connection.transaction((tx) => tx.query(sql`insert into followed (schema) values ('late')`))
  })
  await expect(lost).rejects.toMatchObject({ code: 'UNAVAILABLE' })
  await db.withAdvisoryLock('x', one)
  expect(await countOf(admin, sql`policy.followed where schema = 'late'`)).toBe(0)
})

test('nothing can be asked of a transaction that is over', async () => {
  const tx = await db.transaction(undefined, async (open) => open)
  await expect(tx.query(sql`select 1`)).rejects.toThrow('the transaction is over')
})

test('numbers and times arrive as such', async () => {
  const { rows } = await db.query(sql`
    select 5::bigint as small, 9007199254740993::bigint as large, '2026-01-02T03:04:05.678Z'::timestamptz as at`)
  expect(rows).toEqual([{ small: 5, large: '9007199254740993', at: new Date('2026-01-02T03:04:05.678Z') }])
})

test('a named statement outlives a migration of its table', async () => {
  await admin.query(sql`create table grown (id int)`)
  const all = () => db.query(sql`select * from grown`, 'all')
  await Promise.all([all(), all()])
  await admin.query(sql`alter table grown add name text`)
  await until(() =>
    all().then(
      ({ fields }) => fields.length === 2,
      (err: unknown) => {
        expect(err).toMatchObject({ code: 'UNAVAILABLE' })
        return false
      },
    ),
  )
})

test.each([
  'create table mine (id int)',
  'alter table change add mine int',
  'drop table change',
  'truncate change',
])('a service cannot change tables: %s', async (statement) => {
  await expect(db.query(raw(statement))).rejects.toMatchObject({ code: '42501' })
})

/** What the server answers to the victim of a deadlock, or of another conflict. */
const conflict = (code: string) =>
  sql`do ${raw(`$$ begin raise exception using errcode = '${code}'; end $$`)}`

test('two transactions that block each other both commit: the server ends one, and it is repeated', async () => {
  await admin.query(sql`create table blocking (id int primary key, n int not null)`)
  await admin.query(sql`insert into blocking values (1, 0), (2, 0)`)
  let waiting = 0
  const add = (first: number, second: number) => {
    let isRepeated = false
    return db.transaction(undefined, async (tx) => {
      const [one, two] = isRepeated ? [1, 2] : [first, second]
      isRepeated = true
      await tx.query(sql`update blocking set n = n + 1 where id = ${one}`)
      waiting++
      await until(() => waiting >= 2)
      await tx.query(sql`update blocking set n = n + 1 where id = ${two}`)
    })
  }
  await Promise.all([add(1, 2), add(2, 1)])
  expect((await db.query(sql`select n from blocking order by id`)).rows).toEqual([{ n: 2 }, { n: 2 }])
  expect(waiting).toBeGreaterThan(2)
})

test.each(['40P01', '40001'])('a transaction that meets %s again is UNAVAILABLE', async (code) => {
  let runs = 0
  const failing = db.transaction(undefined, async (tx) => {
    runs++
    await tx.query(conflict(code))
  })
  await expect(failing).rejects.toMatchObject({ code: 'UNAVAILABLE' })
  expect(runs).toBe(2)
  await expect(db.query(conflict(code))).rejects.toMatchObject({ code: 'UNAVAILABLE' })
  expect((await db.query(sql`select 1 as one`)).rows).toEqual([{ one: 1 }])
})

test('a transaction that fails otherwise is not repeated', async () => {
  let runs = 0
  const failing = db.transaction(undefined, async (tx) => {
    runs++
    await tx.query(conflict('23514'))
  })
  await expect(failing).rejects.toMatchObject({ code: '23514' })
  expect(runs).toBe(1)
})

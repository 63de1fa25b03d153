import { type TestDatabase, testDatabase } from '@overlay/launcher/testing'
import sql, { raw } from 'sql-template-tag'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { pruneAudit } from '../src/change-log/prune.js'
import { type Database, openDatabase } from '../src/postgres/database.js'
import { prepareSchemas } from '../src/postgres/migrate.js'
import { services } from '../src/postgres/prepare-and-migrate.js'

let database: TestDatabase
let owner: Database
let db: Database
beforeAll(async () => {
  database = await testDatabase(...services)
  owner = openDatabase(database.ownerUrl, 'policy')
  db = openDatabase(database.urlOf('policy'), 'policy')
})
afterAll(async () => {
  await db[Symbol.asyncDispose]()
  await owner[Symbol.asyncDispose]()
  await database[Symbol.asyncDispose]()
})
beforeEach(async () => {
  await owner.query(sql`truncate audit`)
})

async function add(days: number, count = 1): Promise<void> {
  await db.query(sql`
    insert into audit (request_id, identity_id, kind, entity_id, at)
    select '', '', 'services', n::text, now() - make_interval(days => ${days}::int)
      from generate_series(1, ${count}::int) n`)
}
const rows = async (): Promise<number> => (await owner.query(sql`select from audit`)).rowCount ?? 0

const destructive = ['delete from audit', `update audit set kind = ''`, 'truncate audit']

test.each(services)(
  'the role of %s adds to its audit and cannot remove or change what is there',
  async (service) => {
    await using own = openDatabase(database.urlOf(service), service)
    await own.query(sql`insert into audit (request_id, identity_id, kind, entity_id) values ('', '', '', '')`)
    for (const statement of destructive)
      await expect(own.query(raw(statement)), statement).rejects.toMatchObject({ code: '42501' })
  },
)

test('rights that are granted again leave the audit as it is', async () => {
  const role = (await db.query<{ name: string }>(sql`select current_user::text as name`)).rows[0]?.name ?? ''
  await owner.query(raw(`revoke insert on service from ${role}`))
  await prepareSchemas(database.ownerUrl, [{ schema: 'policy', role, password: 'x' }])
  const { rows } = await db.query(sql`select has_table_privilege('service', 'insert') as granted`)
  expect(rows).toEqual([{ granted: true }])
  for (const statement of destructive)
    await expect(db.query(raw(statement)), statement).rejects.toMatchObject({ code: '42501' })
})

test('rows past their retention are pruned in batches, younger ones stay', async () => {
  await add(31, 1001)
  await add(29)
  expect(await pruneAudit(db, 30)).toBe(1001)
  expect(await rows()).toBe(1)
})

test('no caller may set a retention below a week', async () => {
  await add(6)
  for (const days of [6, 0, -1]) await expect(pruneAudit(db, days)).rejects.toMatchObject({ code: '22023' })
  expect(await pruneAudit(db, 7)).toBe(0)
  expect(await rows()).toBe(1)
})

test('one replica prunes at a time', async () => {
  await add(31)
  await owner.transaction(undefined, async (tx) => {
    await tx.query(sql`select pg_advisory_xact_lock(hashtextextended('prune policy', 0))`)
    expect(await pruneAudit(db, 30)).toBe(0)
  })
  expect(await pruneAudit(db, 30)).toBe(1)
})

test('a temporary table in place of the audit is not what is pruned', async () => {
  await add(31)
  const removed = await db.transaction(undefined, async (tx) => {
    await tx.query(sql`create temporary table audit (id int, at timestamptz) on commit drop`)
    await tx.query(sql`insert into pg_temp.audit values (1, '2000-01-01')`)
    await tx.query(sql`select prune_audit(30, 10)`)
    return (await tx.query(sql`select from pg_temp.audit`)).rowCount
  })
  expect(removed).toBe(1)
  expect(await rows()).toBe(0)
})

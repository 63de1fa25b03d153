import { type TestDatabase, testDatabase } from '@overlay/launcher/testing'
import { service as services } from '@overlay/model'
import { Fault, ownContext } from '@overlay/rpc'
import pino from 'pino'
import sql from 'sql-template-tag'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { noBus } from '../src/change-log/bus.js'
import { type ChangeLog, openChangeLog } from '../src/change-log/change-log.js'
import { entityService } from '../src/kind-store/entity-service.js'
import { kind } from '../src/kind-store/kind.js'
import type { Seams } from '../src/kind-store/seams.js'
import { type Database, openDatabase } from '../src/postgres/database.js'

const context = ownContext(new AbortController().signal)
const bytes = (body: object) => Buffer.from(JSON.stringify(body))

let database: TestDatabase
let db: Database
let changeLog: ChangeLog
let transactions = 0
beforeAll(async () => {
  database = await testDatabase('policy')
  db = openDatabase(database.urlOf('policy'), 'policy')
  const counted: Database = {
    ...db,
    transaction(deadline, work) {
      transactions++
      return db.transaction(deadline, work)
    },
  }
  changeLog = await openChangeLog(counted, noBus, pino({ level: 'silent' }))
})
afterAll(async () => {
  await changeLog[Symbol.asyncDispose]()
  await db[Symbol.asyncDispose]()
  await database[Symbol.asyncDispose]()
})

type Writing = Seams<typeof services>['writing']
const serviceWith = (writing?: Writing) =>
  entityService({
    changeLog,
    kinds: [kind(services, { view: async () => [], ...(writing && { writing }) })],
    names: async () => new Map(),
  })
type Store = ReturnType<typeof serviceWith>
const create = (store: Store, name: string) =>
  store.create({ kind: 'services', json: bytes({ name, encryptionRequired: true }) }, context)
const update = (store: Store, id: string, body: object) =>
  store.update({ ref: { kind: 'services', id }, json: bytes(body), mask: Object.keys(body) }, context)
const createAll = (store: Store, names: readonly string[]) =>
  Promise.allSettled(names.map((name) => create(store, name)))

async function transactionsOf(work: () => Promise<unknown>): Promise<number> {
  transactions = 0
  await work()
  return transactions
}

async function auditOf(names: readonly string[]): Promise<unknown[]> {
  const { rows } = await db.query(sql`
    select after ->> 'name' as name, change.number is not null as "isFollowed"
      from audit left join change using (number) where after ->> 'name' = any(${names}) order by audit.id`)
  return rows
}

test('writes that arrive together share a transaction, with a change of each', async () => {
  const names = ['a', 'b', 'c']
  expect(await transactionsOf(() => createAll(serviceWith(), names))).toBe(1)
  expect(await auditOf(names)).toEqual(names.map((name) => ({ name, isFollowed: true })))
})

test('a rule that uses the transaction sees what other writes of it have written', async () => {
  const seen: number[] = []
  const store = serviceWith(async (tx) => {
    const { rows } = await tx.query<{ n: number }>(
      sql`select count(*) as n from service where name like 'seen-%'`,
    )
    seen.push(rows[0]?.n ?? -1)
    return {}
  })
  expect(await transactionsOf(() => createAll(store, ['seen-1', 'seen-2', 'seen-3']))).toBe(1)
  expect(seen).toEqual([0, 1, 2])
})

test('a write that a rule refuses harms no other', async () => {
  const store = serviceWith(async (_tx, { name }) => {
    if (name === 'refused') throw new Fault('NOT_FOUND')
    return {}
  })
  const outcome = createAll(store, ['kept-1', 'refused', 'kept-2'])
  expect(await transactionsOf(() => outcome)).toBe(2) // the refused one has its own
  expect(await outcome).toMatchObject([
    { status: 'fulfilled' },
    { status: 'rejected', reason: { code: 'NOT_FOUND' } },
    { status: 'fulfilled' },
  ])
})

test('what a refused rule has written is undone, and other writes are not', async () => {
  const store = serviceWith(async (tx, { name }) => {
    await tx.query(sql`insert into followed (schema) values (${name})`)
    if (name === 'refused late') throw new Fault('NOT_FOUND')
    return {}
  })
  const outcome = await createAll(store, ['late-1', 'refused late', 'late-2'])
  expect(outcome.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
  const { rows } = await db.query(sql`select schema from followed where schema like '%late%' order by schema`)
  expect(rows).toEqual([{ schema: 'late-1' }, { schema: 'late-2' }])
  expect(await auditOf(['late-1', 'refused late', 'late-2'])).toHaveLength(2)
})

test('of several writes with one name one succeeds, and none harms another', async () => {
  const outcome = await createAll(serviceWith(), ['twin', 'single', 'twin'])
  expect(outcome.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'fulfilled', 'rejected'])
  expect(outcome.find(({ status }) => status === 'rejected')).toMatchObject({
    reason: { code: 'COULD_NOT_VALIDATE', detail: { field: 'name' } },
  })
})

test('changes of one row at the same time are all kept', async () => {
  const store = serviceWith()
  const { id } = await create(store, 'shared')
  await Promise.all([
    update(store, id, { name: 'renamed' }),
    update(store, id, { maxIdleTimeMillis: 7 }),
    update(store, id, { tags: { a: 1 } }),
  ])
  const { rows } = await db.query(
    sql`select name, max_idle_time_millis as idle, tags from service where id = ${id}`,
  )
  expect(rows).toEqual([{ name: 'renamed', idle: 7, tags: { a: 1 } }])
})

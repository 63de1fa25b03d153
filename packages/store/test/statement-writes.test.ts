import { type TestDatabase, testDatabase } from '@overlay/launcher/testing'
import { service as services } from '@overlay/model'
import { metrics, openLog } from '@overlay/process'
import { ownContext } from '@overlay/rpc'
import sql from 'sql-template-tag'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type ChangeLog, openChangeLog } from '../src/change-log/change-log.js'
import { noBus } from '../src/change-log/no-bus.js'
import { entityService } from '../src/kind-store/entity-service.js'
import { kind } from '../src/kind-store/kind.js'
import type { Seams } from '../src/kind-store/seams.js'
import { type Database, openDatabase } from '../src/postgres/database.js'

const context = ownContext(new AbortController().signal)
const bytes = (body: object) => Buffer.from(JSON.stringify(body))

let database: TestDatabase
let db: Database
let changeLog: ChangeLog
const logged: string[] = []
const statements: string[] = []
beforeAll(async () => {
  database = await testDatabase('policy')
  db = openDatabase(database.urlOf('policy'), 'policy')
  const counted: Database = {
    ...db,
    query(query, name) {
      statements.push(String(name))
      return db.query(query, name)
    },
  }
  const log = openLog('test', {
    level: 'info',
    format: 'json',
    destination: { write: (line) => void logged.push(line) },
  })
  changeLog = await openChangeLog(counted, noBus, log)
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
const create = (store: ReturnType<typeof serviceWith>, name: string) =>
  store.create({ kind: 'services', json: bytes({ name, encryptionRequired: true }) }, context)
const rename = (store: ReturnType<typeof serviceWith>, id: string, name: string) =>
  store.update({ ref: { kind: 'services', id }, json: bytes({ name }), mask: ['name'] }, context)

async function fallbacks(cause: string): Promise<number> {
  const { values } = await metrics.writeFallbacks.get()
  return values.find(({ labels }) => labels.schema === 'policy' && labels.cause === cause)?.value ?? 0
}

/** How often rows were read to be compared while this ran. */
async function readsDuring(work: () => Promise<unknown>): Promise<number> {
  statements.length = 0
  await work()
  return statements.filter((name) => name === 'read-services').length
}

test('a row that was seen is compared with its transaction and with the history of the database', async () => {
  const store = serviceWith()
  const { id } = await create(store, 'first')
  expect(await readsDuring(() => rename(store, id, 'second'))).toBe(0)
  // as a failover does, after which other transactions have the numbers of those that were lost
  await db.query(sql`update stream set timeline = gen_random_uuid()`)
  expect(await readsDuring(() => rename(store, id, 'third'))).toBe(1)
  expect(await readsDuring(() => rename(store, id, 'fourth'))).toBe(0)
  const { rows } = await db.query(sql`select name from service where id = ${id}`)
  expect(rows).toEqual([{ name: 'fourth' }])
})

test('an error that no rule explains is logged and counted, and a transaction writes the row', async () => {
  let calls = 0
  const store = serviceWith(async () => {
    if (calls++ === 0) throw new TypeError('a defect')
    return {}
  })
  const before = await fallbacks('error')
  await create(store, 'with a defect')
  expect(await fallbacks('error')).toBe(before + 1)
  expect(logged.join('')).toContain('"message":"a defect"')
})

test('a rule that needs the transaction is counted, and not logged', async () => {
  logged.length = 0
  const before = await fallbacks('needed')
  const store = serviceWith(async (tx) => {
    await tx.query(sql`select 1`)
    return {}
  })
  await create(store, 'with a transaction')
  expect(await fallbacks('needed')).toBe(before + 1)
  expect(logged).toEqual([])
})

test('a write that a unique name refuses is counted, and not logged', async () => {
  logged.length = 0
  const store = serviceWith()
  await create(store, 'taken')
  const before = await fallbacks('row')
  await expect(create(store, 'taken')).rejects.toMatchObject({ code: 'COULD_NOT_VALIDATE' })
  expect(await fallbacks('row')).toBe(before + 1)
  expect(logged).toEqual([])
})

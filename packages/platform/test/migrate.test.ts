import { randomBytes } from 'node:crypto'
import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestDatabase, testDatabase } from '@overlay/launcher/testing'
import sql, { raw } from 'sql-template-tag'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Database, openDatabase } from '../src/postgres/database.js'
import { migrate, prepareSchemas, untilMigrated } from '../src/postgres/migrate.js'

const services = ['identity', 'pki', 'policy', 'sessions']
const migrations = (service: string) => join(import.meta.dirname, '../../../services', service, 'migrations')

let database: TestDatabase
let admin: Database
let work: string
beforeAll(async () => {
  database = await testDatabase('identity')
  admin = openDatabase(database.ownerUrl, 'identity')
  work = await mkdtemp(join(tmpdir(), 'overlay-migrate-'))
})
afterAll(async () => {
  await admin[Symbol.asyncDispose]()
  await database[Symbol.asyncDispose]()
  await rm(work, { recursive: true })
})

/** A schema and a role that no other test uses. */
const fresh = () => {
  const name = `s_${randomBytes(4).toString('hex')}`
  return { schema: name, role: `overlay_test_${name}`, password: 'secret' }
}
const urlOf = (role: string) => Object.assign(new URL(database.ownerUrl), { username: role }).href
const dropRole = (role: string) => admin.query(raw(`drop owned by ${role}; drop role ${role}`))

test.each(['20260112090000000_change-stream', '20260113040000000_audit-kept'])(
  '%s is the same in all schemas',
  async (name) => {
    const texts = await Promise.all(
      services.map((service) => readFile(join(migrations(service), `${name}.sql`), 'utf8')),
    )
    expect(new Set(texts).size).toBe(1)
  },
)

test('replicas that start together make schemas, roles and tables once', async () => {
  const one = fresh()
  const replicas = [1, 2, 3]
  await Promise.all(replicas.map(() => prepareSchemas(database.ownerUrl, [one])))
  await Promise.all(replicas.map(() => migrate(database.ownerUrl, one.schema, migrations('policy'))))
  await untilMigrated(urlOf(one.role), one.schema, migrations('policy'))
  const { rows } = await admin.query(
    sql`select count(distinct name) = count(*) as once from ${raw(one.schema)}.migration`,
  )
  expect(rows).toEqual([{ once: true }])
  await dropRole(one.role)
})

test('a role reads and writes the rows of its own schema, of later tables too, and nothing else', async () => {
  const [one, other] = [fresh(), fresh()]
  await prepareSchemas(database.ownerUrl, [one, other])
  await admin.query(raw(`create table ${one.schema}.later (id serial, at int)`))
  await admin.query(raw(`create table ${other.schema}.later (id serial, at int)`))
  await using db = openDatabase(urlOf(one.role), one.schema)
  await db.query(sql`insert into later (at) values (1)`)
  await db.query(sql`update later set at = 2`)
  expect((await db.query(sql`select id, at from later`)).rows).toEqual([{ id: 1, at: 2 }])
  await db.query(sql`delete from later`)
  const forbidden = [
    `select from ${other.schema}.later`,
    `create table ${one.schema}.mine (id int)`,
    `create table public.mine (id int)`,
    `drop table later`,
    `create schema mine`,
  ]
  for (const statement of forbidden)
    await expect(db.query(raw(statement)), statement).rejects.toMatchObject({ code: '42501' })
  await dropRole(one.role)
  await dropRole(other.role)
})

test('a service waits until its schema is new enough', async () => {
  const one = fresh()
  const waiting = untilMigrated(urlOf(one.role), one.schema, migrations('policy')) // not even the role is there
  await prepareSchemas(database.ownerUrl, [one])
  await migrate(database.ownerUrl, one.schema, migrations('policy'))
  await waiting
  await dropRole(one.role)
})

test('a service that waits can be stopped', async () => {
  const { role, schema } = fresh()
  const waiting = untilMigrated(urlOf(role), schema, migrations('policy'), {
    signal: AbortSignal.timeout(10),
  })
  await expect(waiting).rejects.toMatchObject({ name: 'AbortError' })
})

test('a schema that is newer than the program is refused, with both versions', async () => {
  const one = fresh()
  const dir = join(work, one.schema)
  await cp(migrations('policy'), dir, { recursive: true })
  await writeFile(join(dir, '29990101000000000_tomorrow.sql'), '-- Up Migration\nselect 1;\n')
  await prepareSchemas(database.ownerUrl, [one])
  await migrate(database.ownerUrl, one.schema, dir)
  const refused = /is at 29990101000000000_tomorrow, this program knows it up to 2026/
  await expect(untilMigrated(urlOf(one.role), one.schema, migrations('policy'))).rejects.toThrow(refused)
  await expect(migrate(database.ownerUrl, one.schema, migrations('policy'))).rejects.toThrow(refused)
  await dropRole(one.role)
})

test('an owner that may not make roles is told the sql to run, without passwords, and finds it done', async () => {
  const [one, owner] = [fresh(), fresh()]
  await admin.query(raw(`create role ${owner.role} login`))
  await admin.query(
    raw(
      `do $$ begin execute 'grant create on database ' || current_database() || ' to ${owner.role}'; end $$`,
    ),
  )
  const prepare = () => prepareSchemas(urlOf(owner.role), [one])
  const message = await prepare().then(
    () => '',
    (err: Error) => err.message,
  )
  expect(message).toContain(`alter role "${one.role}" login password '<password of ${one.role}>'`)
  expect(message).not.toContain('SCRAM')
  await admin.query(raw(message.slice(message.indexOf('\n\n'))))
  await prepare()
  await dropRole(one.role)
  await dropRole(owner.role)
})

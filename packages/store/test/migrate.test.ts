import { randomBytes } from 'node:crypto'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestDatabase, testDatabase } from '@overlay/launcher/testing'
import type { Logger } from 'pino'
import sql, { raw } from 'sql-template-tag'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { type Database, openDatabase } from '../src/postgres/database.js'
import {
  MissingRights,
  migrate,
  migrateTo,
  migrationsIn,
  prepareSchemas,
  type Releases,
  untilMigrated,
} from '../src/postgres/migrate.js'
import { migrationsAt, services } from '../src/postgres/prepare-and-migrate.js'

const migrations = (service: string) => migrationsAt(join(import.meta.dirname, '../../..'), service)
const policyMigrations = await migrationsIn(migrations('policy'))

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
  return { schema: name, role: `overlay_test_${name}`, password: 'geheim' }
}
const urlOf = (role: string) => Object.assign(new URL(database.ownerUrl), { username: role }).href
const dropRole = (role: string) => admin.query(raw(`drop owned by ${role}; drop role ${role}`))

test.each(services)('every migration of %s has a stamp of its own', async (service) => {
  const stamps = (await migrationsIn(migrations(service))).map((name) => name.slice(0, 17))
  expect(stamps).toEqual([...new Set(stamps)])
})

test('a schema is brought to where another one was, and no further', async () => {
  const one = fresh()
  await prepareSchemas(database.ownerUrl, [one])
  const target = policyMigrations.slice(0, -2)
  await migrateTo(database.ownerUrl, one.schema, migrations('policy'), target)
  const { rows } = await admin.query(sql`select name from ${raw(one.schema)}.migration order by name`)
  expect(rows.map(({ name }) => name)).toEqual(target)
  await dropRole(one.role)
})

test('a migration that comes before one that has run is refused', async () => {
  const one = fresh()
  const folder = join(work, one.schema)
  await mkdir(folder)
  await writeFile(join(folder, '20260112090500000_between.sql'), '-- Up Migration\nselect 1;\n')
  await prepareSchemas(database.ownerUrl, [one])
  await migrate(database.ownerUrl, one.schema, migrations('policy'))
  await expect(migrate(database.ownerUrl, one.schema, [...migrations('policy'), folder])).rejects.toThrow(
    'migration 20260112090500000_between',
  )
  await dropRole(one.role)
})

test('replicas that start together make schemas, roles and tables once', async () => {
  const one = fresh()
  const replicas = [1, 2, 3]
  await Promise.all(replicas.map(() => prepareSchemas(database.ownerUrl, [one])))
  await Promise.all(replicas.map(() => migrate(database.ownerUrl, one.schema, migrations('policy'))))
  await untilMigrated(urlOf(one.role), one.schema, policyMigrations)
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

/** What a role may do with the relations and functions of a schema, as text. */
async function rightsIn(db: Database, schema: string): Promise<string[]> {
  const rights = (name: string, kinds: string, all: string) => `
    select '${name} ' || c.relname || ': ' || right_ as granted
      from pg_class c, unnest(array[${all}]) as right_
     where c.relnamespace = '${schema}'::regnamespace and c.relkind in (${kinds})
       and has_${name}_privilege(c.oid, right_)`
  const { rows } = await db.query<{ granted: string }>(
    raw(
      `${rights('table', "'r', 'p', 'v', 'm', 'f'", "'select', 'insert', 'update', 'delete', 'truncate', 'references', 'trigger'")}
       union all ${rights('sequence', "'S'", "'select', 'usage', 'update'")}
       union all select 'schema: create' where has_schema_privilege('${schema}', 'create')
       union all
      select 'function ' || proname from pg_proc
       where pronamespace = '${schema}'::regnamespace and prosecdef and has_function_privilege(oid, 'execute')`,
    ),
  )
  return rows.map(({ granted }) => granted)
}

test.each(services)(
  'of the schema of %s another role may read the head, and nothing else',
  async (service) => {
    const [one, other] = [fresh(), fresh()]
    await prepareSchemas(database.ownerUrl, [one, other])
    await migrate(database.ownerUrl, other.schema, migrations(service))
    await using db = openDatabase(urlOf(one.role), one.schema)
    const { rows: heads } = await db.query(raw(`select timeline, number from ${other.schema}.head`))
    expect(heads).toEqual([{ timeline: expect.any(String), number: 0 }])
    expect(await rightsIn(db, other.schema)).toEqual(['table head: select'])
    for (const { role } of [one, other]) await dropRole(role)
  },
)

test('a dump that was restored without its roles gets back what all roles may, and no more', async () => {
  const [one, other] = [fresh(), fresh()]
  await prepareSchemas(database.ownerUrl, [one, other])
  await migrate(database.ownerUrl, other.schema, migrations('identity'))
  await admin.query(
    raw(
      `revoke all on schema ${other.schema} from public; revoke all on ${other.schema}.head from public;
       grant execute on function ${other.schema}.prune_audit(int, int) to public`,
    ),
  )
  await prepareSchemas(database.ownerUrl, [one, other])
  await using db = openDatabase(urlOf(one.role), one.schema)
  expect(await rightsIn(db, other.schema)).toEqual(['table head: select'])
  for (const { role } of [one, other]) await dropRole(role)
})

test('a service waits until its schema is new enough', async () => {
  const one = fresh()
  const waiting = untilMigrated(urlOf(one.role), one.schema, policyMigrations) // not even the role is there
  await prepareSchemas(database.ownerUrl, [one])
  await migrate(database.ownerUrl, one.schema, migrations('policy'))
  await waiting
  await dropRole(one.role)
})

test('a service waits for the schemas whose heads it reads', async () => {
  const [one, other] = [fresh(), fresh()]
  await prepareSchemas(database.ownerUrl, [one])
  await migrate(database.ownerUrl, one.schema, migrations('policy'))
  const info = vi.fn()
  const log = { info } as unknown as Logger
  const waiting = untilMigrated(urlOf(one.role), one.schema, policyMigrations, { log, heads: [other.schema] })
  await vi.waitFor(() =>
    expect(info).toHaveBeenCalledWith(
      expect.objectContaining({ waitingFor: expect.stringContaining(other.schema) }),
      expect.anything(),
    ),
  )
  await prepareSchemas(database.ownerUrl, [other])
  await migrate(database.ownerUrl, other.schema, migrations('identity'))
  await waiting
  for (const { role } of [one, other]) await dropRole(role)
})

test('a service that waits can be stopped', async () => {
  const { role, schema } = fresh()
  const waiting = untilMigrated(urlOf(role), schema, policyMigrations, {
    signal: AbortSignal.timeout(10),
  })
  await expect(waiting).rejects.toMatchObject({ name: 'AbortError' })
})

/** Migrates a schema as a later release does. */
async function migrateLater(schema: string, releases: Releases): Promise<void> {
  const dir = join(work, schema)
  await mkdir(dir)
  await writeFile(join(dir, '29990101000000000_tomorrow.sql'), '-- Up Migration\nselect 1;\n')
  await migrate(database.ownerUrl, schema, [...migrations('policy'), dir], releases)
}

test('a migration that waits for a lock lets later statements pass, and runs when the lock is gone', async () => {
  const one = fresh()
  await prepareSchemas(database.ownerUrl, [one])
  await migrate(database.ownerUrl, one.schema, migrations('policy'))
  const dir = join(work, one.schema)
  await mkdir(dir)
  await writeFile(
    join(dir, '29990101000000000_tomorrow.sql'),
    '-- Up Migration\nalter table audit add x int;\n',
  )
  await using dump = openDatabase(database.ownerUrl, one.schema)
  await using service = openDatabase(urlOf(one.role), one.schema)
  const onLocked = vi.fn()
  let migrating: Promise<void> | undefined
  await dump.transaction(undefined, async (tx) => {
    await tx.query(sql`select from audit`)
    migrating = migrate(database.ownerUrl, one.schema, [...migrations('policy'), dir], { onLocked })
    await vi.waitFor(() => expect(onLocked).toHaveBeenCalled(), 30_000)
    await service.query(sql`select from audit`)
  })
  await migrating
  await service.query(sql`select x from audit`)
  expect(onLocked.mock.calls).toEqual([[one.schema]])
  await dropRole(one.role)
})

test('a lost connection fails a migration, and nothing else', async () => {
  const one = fresh()
  await prepareSchemas(database.ownerUrl, [one])
  await migrate(database.ownerUrl, one.schema, migrations('policy'))
  const dir = join(work, one.schema)
  await mkdir(dir)
  const waiting = `select pg_advisory_xact_lock(hashtextextended('${one.schema}', 0))`
  await writeFile(
    join(dir, '29990101000000000_tomorrow.sql'),
    `-- Up Migration\nset lock_timeout = 0; ${waiting};\n`,
  )
  await using holder = openDatabase(database.ownerUrl, one.schema)
  await holder.transaction(undefined, async (tx) => {
    await tx.query(raw(waiting))
    const migrating = migrate(database.ownerUrl, one.schema, [...migrations('policy'), dir])
    const failed = expect(migrating).rejects.toThrow(/terminating connection|Connection terminated/)
    await vi.waitFor(async () => {
      const { rowCount } = await admin.query(sql`
        select pg_terminate_backend(pid) from pg_stat_activity
         where wait_event_type = 'Lock' and position(${one.schema} in query) > 0`)
      expect(rowCount).toBe(1)
    }, 30_000)
    await failed
  })
  await dropRole(one.role)
})

test('a schema of the next release is used and left alone, and one of a later release is refused', async () => {
  const one = fresh()
  await prepareSchemas(database.ownerUrl, [one])
  await migrate(database.ownerUrl, one.schema, migrations('policy'), { oldest: '0.8.0' })
  await migrateLater(one.schema, { oldest: '0.9.0' })
  const start = async (release: string): Promise<readonly string[]> => {
    const warn = vi.fn()
    const log = { warn } as unknown as Logger
    await untilMigrated(urlOf(one.role), one.schema, policyMigrations, { release, log })
    await migrate(database.ownerUrl, one.schema, migrations('policy'), { release, oldest: '0.8.0' })
    return warn.mock.calls.map(([, message]) => message)
  }
  expect(await start('0.9.0')).toEqual(['schema belongs to the next release'])
  expect(await start('0.10.0')).toEqual(['schema belongs to the next release'])
  const refused =
    /is at 29990101000000000_tomorrow, this program knows it up to 2026.*: release 0.9.0 or newer is required/
  await expect(start('0.8.1')).rejects.toThrow(refused)
  await expect(migrate(database.ownerUrl, one.schema, migrations('policy'))).rejects.toThrow(refused)
  await dropRole(one.role)
})

test('a newer schema that does not say which releases it works with is refused', async () => {
  const one = fresh()
  await prepareSchemas(database.ownerUrl, [one])
  await migrateLater(one.schema, {})
  await admin.query(raw(`comment on table ${one.schema}.migration is null`))
  const refused = /is at 29990101000000000_tomorrow, this program knows it up to 2026/
  const release = '9.0.0'
  await expect(untilMigrated(urlOf(one.role), one.schema, policyMigrations, { release })).rejects.toThrow(
    refused,
  )
  await expect(migrate(database.ownerUrl, one.schema, migrations('policy'), { release })).rejects.toThrow(
    refused,
  )
  await dropRole(one.role)
})

test('a newer schema that lacks a migration of the program is refused', async () => {
  const one = fresh()
  await prepareSchemas(database.ownerUrl, [one])
  await migrateLater(one.schema, { oldest: '0.9.0' })
  const other = [...policyMigrations, '20990101000000000_elsewhere']
  const refused = /is at 29990101000000000_tomorrow, this program knows it up to 20990101000000000_elsewhere/
  await expect(untilMigrated(urlOf(one.role), one.schema, other, { release: '0.9.0' })).rejects.toThrow(
    refused,
  )
  await dropRole(one.role)
})

test('an owner that may not create roles gets the SQL to run, without passwords, and later finds it done', async () => {
  const [one, owner] = [fresh(), fresh()]
  await admin.query(raw(`create role ${owner.role} login`))
  await admin.query(
    raw(
      `do $$ begin execute 'grant create on database ' || current_database() || ' to ${owner.role}'; end $$`,
    ),
  )
  const prepare = () => prepareSchemas(urlOf(owner.role), [one])
  const failure: unknown = await prepare().catch((err: unknown) => err)
  if (!(failure instanceof MissingRights)) throw failure
  expect(failure.sql).toContain(`alter role "${one.role}" login password 'SCRAM-SHA-256$`)
  expect(failure.sql).not.toContain(one.password)
  await admin.query(raw(failure.sql))
  await prepare()
  await dropRole(one.role)
  await dropRole(owner.role)
})

import { appendFile, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestDatabase, testDatabase } from '@overlay/launcher/testing'
import type { ExportedTable } from '@overlay/rpc'
import { withClient } from '@overlay/store/postgres'
import type pg from 'pg'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { exportSchema } from '../src/snapshot/export.js'
import { importSnapshot } from '../src/snapshot/import.js'
import {
  checkContents,
  checkSizes,
  fileOf,
  type Manifest,
  readManifest,
  writeManifest,
} from '../src/snapshot/manifest.js'
import { storedRows } from '../src/snapshot/rows.js'

const schemas = ['identity', 'sessions'] as const
const strange = 'tab\t newline\n backslash \\ quote " Ünder \\N'

let database: TestDatabase
beforeAll(async () => {
  database = await testDatabase(...schemas)
  await withClient(database.ownerUrl, async (client) => {
    await client.query(
      `insert into identity.identity (id, name, type, is_admin, auth_policy_id, app_data, role_attributes)
       values ('i1', $1, 'Default', true, 'default', $2, '{a,"b c"}'), ('i2', 'second', 'Default', false, 'default', '{}', '{}')`,
      [strange, { n: 1.5, deep: [null, strange] }],
    )
    await client.query(
      `insert into identity.authenticator (id, method, identity_id) values ('a1', 'updb', 'i1')`,
    )
    await client.query(
      `insert into identity.audit (request_id, identity_id, kind, entity_id) values ('r', '', 'identities', 'i1')`,
    )
    await client.query(`insert into identity.change values (1, 'identities', 'i1', '{}', now())`)
    await client.query(`insert into sessions.replica values ('sessions', gen_random_uuid(), 0, now())`)
    await client.query(
      `insert into sessions.presence values ('r1', 'sessions', '', '{}', '', '{}', '', now())`,
    )
  })
})
afterAll(() => database[Symbol.asyncDispose]())

/** A directory of snapshots with one in it, of all that the database has now. */
async function exported(): Promise<{ snapshots: string; directory: string; manifest: Manifest }> {
  const snapshots = await mkdtemp(join(tmpdir(), 'overlay-test-'))
  onTestFinished(() => rm(snapshots, { recursive: true }))
  const directory = join(snapshots, 'one')
  return withSnapshot(async (snapshot) => {
    const stored: [string, Manifest['schemas'][string]][] = []
    for (const schema of schemas) {
      const tables = await collect(schema, snapshots, snapshot)
      stored.push([schema, { migrations: tables[0]?.migrations ?? [], tables }])
    }
    const manifest: Manifest = { format: 1, madeAt: '', schemas: Object.fromEntries(stored) }
    await writeManifest(directory, manifest)
    return { snapshots, directory, manifest: await readManifest(directory) }
  })
}

const withSnapshot = <T>(work: (snapshot: string, client: pg.Client) => Promise<T>): Promise<T> =>
  withClient(database.ownerUrl, async (client) => {
    await client.query('begin isolation level repeatable read')
    const { rows } = await client.query<{ snapshot: string }>('select pg_export_snapshot() as snapshot')
    return work(rows[0]?.snapshot ?? '', client)
  })

async function collect(
  schema: 'identity' | 'sessions',
  snapshots: string,
  snapshot: string,
  { maxBytes = 1 << 20, signal = new AbortController().signal } = {},
): Promise<ExportedTable[]> {
  const tables: ExportedTable[] = []
  const exporting = { snapshots, snapshot, directory: 'one', maxBytes }
  for await (const table of exportSchema(database.urlOf(schema), schema, exporting, signal))
    tables.push(table)
  return tables
}

/** Another database, at the same migrations, without any writes. */
async function empty(): Promise<TestDatabase> {
  const other = await testDatabase(...schemas)
  onTestFinished(() => other[Symbol.asyncDispose]())
  return other
}

const read = async (url: string, query: string): Promise<unknown[]> =>
  withClient(url, async (client) => (await client.query(query)).rows)

const everything = `
  select to_jsonb(i) as row from identity.identity i union all select to_jsonb(a) from identity.authenticator a
  union all select to_jsonb(p) from identity.auth_policy p union all select to_jsonb(a) from identity.audit a
  order by 1`

test('what is read back is what was there, to the letter', async () => {
  const { directory, manifest } = await exported()
  await checkSizes(directory, manifest)
  await checkContents(directory, manifest)
  const other = await empty()
  await importSnapshot(other.ownerUrl, { directory, manifest })
  expect(await read(other.ownerUrl, everything)).toEqual(await read(database.ownerUrl, everything))
})

test('a database that is read back has a timeline of its own, and no changes of the old one', async () => {
  const { directory, manifest } = await exported()
  const other = await empty()
  await importSnapshot(other.ownerUrl, { directory, manifest })
  const stream = 'select timeline, number from identity.stream'
  const [[old], [now]] = [await read(database.ownerUrl, stream), await read(other.ownerUrl, stream)]
  expect(now).toMatchObject({ number: (old as { number: string }).number })
  expect((now as { timeline: string }).timeline).not.toBe((old as { timeline: string }).timeline)
  expect(await read(other.ownerUrl, 'select from identity.change')).toEqual([])
})

test('numbers that the database gives go on behind those that are there', async () => {
  const { directory, manifest } = await exported()
  const other = await empty()
  await importSnapshot(other.ownerUrl, { directory, manifest })
  const insert = `insert into identity.audit (request_id, identity_id, kind, entity_id) values ('', '', '', '') returning id`
  expect(await read(other.ownerUrl, insert)).toEqual([{ id: '2' }])
})

test('rows that triggers add while tables are read do not collide with those of the snapshot', async () => {
  await withClient(database.ownerUrl, async (client) => {
    await client.query(
      `insert into identity.api_session (id, token, token_digest, identity_id, authenticator_id, ip_address)
       values ('s1', 't', '\\x00', 'i1', 'a1', '')`, // a trigger adds its credential change
    )
  })
  const changes = 'select api_session_id from identity.credential_change order by id'
  expect(await read(database.ownerUrl, changes)).toEqual([{ api_session_id: 's1' }])
  const { directory, manifest } = await exported()
  const other = await empty()
  await importSnapshot(other.ownerUrl, { directory, manifest })
  expect(await read(other.ownerUrl, 'select id from identity.api_session')).toEqual([{ id: 's1' }])
  expect(await read(other.ownerUrl, changes)).toContainEqual({ api_session_id: 's1' })
})

test('what concerns running processes only is in no snapshot', async () => {
  const { manifest } = await exported()
  const names = Object.values(manifest.schemas).flatMap(({ tables }) => tables.map(({ name }) => name))
  for (const name of ['presence', 'replica', 'identity_connection', 'job', 'finding', 'change', 'migration'])
    expect(names).not.toContain(name)
  expect(names).toContain('audit')
})

test('all schemas are as they were at one point in time, whatever is written meanwhile', async () => {
  const snapshots = await mkdtemp(join(tmpdir(), 'overlay-test-'))
  onTestFinished(() => rm(snapshots, { recursive: true }))
  await withSnapshot(async (snapshot) => {
    await collect('identity', snapshots, snapshot)
    await read(
      database.ownerUrl,
      `with a as (insert into identity.identity_type (id, name) values ('late', 'late') returning id)
       insert into sessions.known_service select id, id from a`,
    )
    const tables = await collect('sessions', snapshots, snapshot)
    expect(tables.find(({ name }) => name === 'known_service')?.rows).toBe(0)
  })
})

test('files are for their owner only', async () => {
  const { directory, manifest } = await exported()
  for (const path of [fileOf(directory, 'identity', 'identity'), join(directory, 'manifest.json')])
    expect((await stat(path)).mode & 0o777).toBe(0o600)
  for (const path of [directory, join(directory, 'identity')]) expect((await stat(path)).mode & 0o077).toBe(0)
  expect(manifest.schemas.identity?.tables.length).toBeGreaterThan(5)
})

test('rows can be looked at before they are in a database', async () => {
  const { directory, manifest } = await exported()
  const names = []
  for await (const { name, external_id } of storedRows(directory, manifest, 'identity', 'identity'))
    names.push([name, external_id])
  expect(names).toEqual([
    [strange, null],
    ['second', null],
  ])
})

test.each([
  ['an export that is given up', { signal: AbortSignal.abort(new Error('given up')) }, 'given up'],
  ['an export that grows too large', { maxBytes: 100 }, 'more than'],
])('%s leaves nothing', async (_which, options, message) => {
  const snapshots = await mkdtemp(join(tmpdir(), 'overlay-test-'))
  onTestFinished(() => rm(snapshots, { recursive: true }))
  await withSnapshot(async (snapshot) => {
    await expect(collect('identity', snapshots, snapshot, options)).rejects.toThrow(message)
  })
  expect(await readdir(join(snapshots, 'one'))).toEqual([])
})

test('a name that leads out of the directory of snapshots is refused', async () => {
  const exporting = { snapshots: tmpdir(), snapshot: '', directory: '../x', maxBytes: 1 }
  const rows = exportSchema(database.urlOf('identity'), 'identity', exporting, new AbortController().signal)
  await expect(rows[Symbol.asyncIterator]().next()).rejects.toThrow('not the name of a snapshot')
})

test.each([
  ['bytes that have changed', (file: string) => changeByte(file), 'is not as it was written'],
  ['bytes that are too many', (file: string) => appendFile(file, 'x\n'), 'cannot be read as it was written'],
  ['a file that is missing', (file: string) => rm(file), 'cannot be read as it was written'],
])('%s are found before anything is written', async (_what, spoil, message) => {
  const { directory, manifest } = await exported()
  await spoil(fileOf(directory, 'identity', 'identity'))
  await expect(checkContents(directory, manifest)).rejects.toThrow(message)
})

async function changeByte(file: string): Promise<void> {
  await writeFile(file, (await readFile(file, 'utf8')).replace('second', 'secund'))
}

test('a directory without a manifest is no snapshot', async () => {
  await expect(readManifest(tmpdir())).rejects.toThrow('is no snapshot')
})

test.each([
  '{}',
  '{"format":2,"schemas":{}}',
  '{"format":1,"schemas":{"a.b":{"migrations":[],"tables":[]}}}',
  '{"format":1,"schemas":{"a":{"migrations":[],"tables":[{"name":"x; drop table y"}]}}}',
])('a manifest of another form is refused: %s', async (text) => {
  const { directory } = await exported()
  await writeFile(join(directory, 'manifest.json'), text)
  await expect(readManifest(directory)).rejects.toThrow('has a form that this program does not know')
})

test('a database that is in use is not touched', async () => {
  const { directory, manifest } = await exported()
  const before = await read(database.ownerUrl, everything)
  await expect(importSnapshot(database.ownerUrl, { directory, manifest })).rejects.toThrow('is in use')
  expect(await read(database.ownerUrl, everything)).toEqual(before)
})

test('when one table cannot be read nothing is', async () => {
  const { directory, manifest } = await exported()
  const file = fileOf(directory, 'sessions', 'stream')
  await writeFile(file, 'no such row\n')
  const other = await empty()
  const before = await read(other.ownerUrl, everything)
  await expect(importSnapshot(other.ownerUrl, { directory, manifest })).rejects.toThrow()
  expect(await read(other.ownerUrl, everything)).toEqual(before)
})

test('a snapshot of other migrations is refused', async () => {
  const { directory, manifest } = await exported()
  const { identity, ...rest } = manifest.schemas
  const older = { migrations: identity?.migrations.slice(0, -1) ?? [], tables: identity?.tables ?? [] }
  const other = await empty()
  await expect(
    importSnapshot(other.ownerUrl, {
      directory,
      manifest: { ...manifest, schemas: { ...rest, identity: older } },
    }),
  ).rejects.toThrow('schema identity is at')
})

import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestDatabase, testDatabase, withClient } from '@overlay/launcher/testing'
import { type Entity, kinds, snake } from '@overlay/model'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { management } from '../../gateway/src/api/operations.js'
import { services } from '../../launcher/src/servers/schemas.js'
import { readManifest, storedRows } from '../../packages/maintenance/src/snapshot/index.js'
import type { Admin } from '../admin.js'
import { buildWithExtraField } from '../extra-field/build.js'
import { type Network, startNetwork } from '../network.js'
import { samples } from './samples.js'

// A build of the product in which each kind has an extra field: only the definition and a column mention it.

const mounted = (operation: string): boolean => operation in management
const tableOf = ({ table, singular }: Entity): string => table ?? snake(singular)
const listed = [...kinds.values()].filter(({ kind }) => mounted(`GET /${kind}`))
const created = listed.filter(({ kind }) => mounted(`POST /${kind}`))

let network: Network
let admin: Admin
let home: string

beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), 'overlay-test-'))
  network = await startNetwork({
    entry: await buildWithExtraField(),
    database: await databaseWithExtraColumns(),
    env: { OVERLAY_HOME: home },
  })
  admin = await network.admin()
})
afterAll(async () => {
  await network?.[Symbol.asyncDispose]()
  await rm(home, { recursive: true, force: true })
})

const query = <Row extends object>(text: string, values: readonly unknown[] = []): Promise<Row[]> =>
  withClient(network.databaseUrl, async (client) => (await client.query<Row>(text, [...values])).rows)

/** Rows that are there from the start hold the value 'stored'. */
async function databaseWithExtraColumns(): Promise<TestDatabase> {
  const database = await testDatabase(...services)
  await withClient(database.ownerUrl, async (client) => {
    for (const entity of kinds.values()) {
      const table = `${entity.owner}.${tableOf(entity)}`
      await client.query(`
        alter table ${table} add column if not exists extra text collate "C" not null default 'stored';
        alter table ${table} alter column extra set default ''`)
    }
  })
  return database
}

type Row = Readonly<Record<string, unknown>>
const rowsOf = (kind: string, filter: string): Promise<readonly Row[]> =>
  admin.request('GET', `/${kind}?filter=${encodeURIComponent(filter)}`)

describe.each(created.map((entity) => [entity.kind, entity] as const))(
  'a new field of %s',
  (kind, entity) => {
    let id: string
    let sample: Row
    const extra = async (): Promise<unknown> => (await admin.request<Row>('GET', `/${kind}/${id}`)).extra

    beforeAll(async () => {
      sample = (await samples[kind]?.(admin, `extra-${kind}`)) as Row
      id = await admin.create(kind, { ...sample, extra: 'created' })
    })

    test('is stored by a create', async () => {
      expect(await extra()).toBe('created')
    })

    test('is in lists, which filter and sort by it', async () => {
      expect(await rowsOf(kind, 'extra = "created" sort by extra')).toMatchObject([{ id, extra: 'created' }])
    })

    test('is in the changes that others follow', async () => {
      if (!entity.followed) return
      const last = `select entity ->> 'extra' as extra from ${entity.owner}.change
                   where kind = $1 and entity_id = $2 order by number desc limit 1`
      expect(await query(last, [kind, id])).toEqual([{ extra: 'created' }])
    })

    if (!mounted(`PUT /${kind}/{id}`)) return

    test('is set by a replace, and reset by one without it', async () => {
      await admin.request('PUT', `/${kind}/${id}`, { ...sample, extra: 'replaced' })
      expect(await extra()).toBe('replaced')
      await admin.request('PUT', `/${kind}/${id}`, sample)
      expect(await extra()).toBe('')
    })

    test('is set by a patch, and left alone by one without it', async () => {
      const required = Object.entries(entity.fields).filter(([, { write }]) => write[2] === 'R')
      const needed = Object.fromEntries(required.map(([name]) => [name, sample[name]]))
      await admin.request('PATCH', `/${kind}/${id}`, { ...needed, extra: 'patched' })
      expect(await extra()).toBe('patched')
      await admin.request('PATCH', `/${kind}/${id}`, { ...needed, tags: {} })
      expect(await extra()).toBe('patched')
    })
  },
)

test.each(listed.map(({ kind }) => [kind]))(
  'a new field of %s is in lists of rows that exist already',
  async (kind) => {
    const stored = await query<Row>(
      `select id from ${kinds.get(kind)?.owner}.${tableOf(kinds.get(kind) as Entity)} where extra = 'stored'`,
    )
    expect(await rowsOf(kind, 'extra = "stored" limit none')).toHaveLength(stored.length)
  },
)

interface Schema {
  readonly $ref?: string
  readonly properties?: Readonly<Record<string, Schema>>
  readonly items?: Schema
}
interface Operation {
  readonly parameters: readonly { readonly in: string; readonly schema?: Schema }[]
  readonly responses: Readonly<Record<string, { readonly schema?: Schema }>>
}
interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
  readonly definitions: Readonly<Record<string, Schema>>
}

test('a new field of any kind is in the documents, in bodies and answers', async () => {
  const { body } = await admin.call('GET', '/specs/edge-management/spec')
  const { paths, definitions } = body as unknown as Document
  const resolve = (schema: Schema | undefined): Schema =>
    schema?.$ref ? resolve(definitions[schema.$ref.replace('#/definitions/', '')]) : (schema ?? {})
  const hasExtra = (schema: Schema | undefined): boolean => 'extra' in (resolve(schema).properties ?? {})
  const missing: string[] = []
  for (const { kind } of listed) {
    for (const path of [`/${kind}`, `/${kind}/{id}`])
      for (const [method, { parameters, responses }] of Object.entries(paths[path] ?? {})) {
        const data = resolve(resolve(responses['200']?.schema).properties?.data)
        const shown = method === 'get' ? (data.items ?? data) : undefined
        const sent = parameters.find((parameter) => parameter.in === 'body')?.schema
        for (const schema of [shown, sent]) if (schema && !hasExtra(schema)) missing.push(`${method} ${path}`)
      }
  }
  expect(missing).toEqual([])
})

test('a new field of any kind is in a snapshot', async () => {
  await admin.request('POST', '/database/snapshot')
  const [name = ''] = await readdir(join(home, 'snapshots'))
  const directory = join(home, 'snapshots', name)
  const manifest = await readManifest(directory)
  for (const entity of kinds.values()) {
    const [rows] = await query<{ values: readonly string[] }>(
      `select array_agg(extra order by id) as values from ${entity.owner}.${tableOf(entity)}`,
    )
    const stored = new Map<string, string | null | undefined>()
    for await (const { id, extra } of storedRows(directory, manifest, entity.owner, tableOf(entity)))
      stored.set(id ?? '', extra)
    const inOrder = [...stored].sort(([a], [b]) => Buffer.compare(Buffer.from(a), Buffer.from(b)))
    expect([entity.kind, inOrder.map(([, extra]) => extra)]).toEqual([entity.kind, rows?.values ?? []])
  }
})

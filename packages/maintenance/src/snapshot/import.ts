import { createReadStream } from 'node:fs'
import { pipeline } from 'node:stream/promises'
import { migrationsOf, openClient } from '@overlay/store/postgres'
import pg from 'pg'
import { from } from 'pg-copy-streams'
import { fileOf, type Manifest, type StoredSchema } from './manifest.js'
import { copyTarget, tableName, tablesOf } from './tables.js'

export interface ImportOptions {
  readonly directory: string
  readonly manifest: Manifest
}

/**
 * Replaces the rows that migrations have inserted by those of a snapshot, in one transaction. The schemas must be at its
 * migrations and unused. Each begins a new timeline: followers must reload.
 */
export async function importSnapshot(
  ownerUrl: string,
  { directory, manifest }: ImportOptions,
): Promise<void> {
  await using connection = await openClient(ownerUrl, { application_name: 'restore' })
  const { client } = connection
  const schemas = Object.entries(manifest.schemas)
  await client.query('begin')
  for (const [schema, stored] of schemas) await requireUntouched(client, schema, stored)
  for (const [schema, stored] of schemas) {
    await empty(client, schema, stored)
    await fill(client, schema, stored, directory)
    await beginAnew(client, schema)
  }
  await client.query('commit')
  await client.query('analyze')
}

/** Refuses a database that is in use. The schemas need not exist. */
export async function requireUnused(ownerUrl: string, schemas: readonly string[]): Promise<void> {
  await using connection = await openClient(ownerUrl, { application_name: 'restore' })
  const { client } = connection
  for (const schema of schemas) {
    const { rows } = await client.query<{ audit: string | null }>('select to_regclass($1) as audit', [
      tableName(schema, 'audit'),
    ])
    if (rows[0]?.audit) await requireNoWrites(client, schema)
  }
}

/** Each write leaves a row in the audit, and most increase the number of the stream. */
async function requireNoWrites(client: pg.ClientBase, schema: string): Promise<void> {
  const { rowCount } = await client.query(`
    select from ${tableName(schema, 'stream')}
     where number > 0 or exists (select from ${tableName(schema, 'audit')})`)
  if (rowCount)
    throw new Error(
      `schema ${schema} is in use: restore into an empty database; without DATABASE_URL, set OVERLAY_HOME to a new directory`,
    )
}

/** Locks the schema against writes until the commit, and refuses it if it has any. */
async function requireUntouched(
  client: pg.ClientBase,
  schema: string,
  { migrations, tables }: StoredSchema,
): Promise<void> {
  const run = await migrationsOf(client, schema)
  if (run.join() !== migrations.join())
    throw new Error(`schema ${schema} is at ${run.at(-1) ?? 'nothing'}, the snapshot at ${migrations.at(-1)}`)
  await client.query(`lock table ${tableName(schema, 'audit')} in share row exclusive mode`)
  await requireNoWrites(client, schema)
  const present = await tablesOf(client, schema)
  const expected = tables.map((table) => copyTarget(schema, table))
  if (present.map((table) => copyTarget(schema, table)).join() !== expected.join())
    throw new Error(`the tables of schema ${schema} are not those of the snapshot`)
}

async function empty(client: pg.ClientBase, schema: string, { tables }: StoredSchema): Promise<void> {
  for (const { name } of [...tables].reverse()) await client.query(`delete from ${tableName(schema, name)}`)
}

async function fill(
  client: pg.Client,
  schema: string,
  { tables }: StoredSchema,
  directory: string,
): Promise<void> {
  for (const table of tables) {
    await client.query(`delete from ${tableName(schema, table.name)}`) // rows of triggers of the tables before
    const target = client.query(from(`copy ${copyTarget(schema, table)} from stdin`))
    await pipeline(createReadStream(fileOf(directory, schema, table.name)), target)
    if (target.rowCount !== table.rows)
      throw new Error(`${schema}.${table.name}: ${target.rowCount} rows read of ${table.rows}`)
    await continueSequences(client, schema, table.name) // triggers of the tables behind add rows
  }
}

async function beginAnew(client: pg.ClientBase, schema: string): Promise<void> {
  await client.query(
    `update ${tableName(schema, 'stream')} set timeline = gen_random_uuid(), origin = null, wal = null`,
  )
}

/** Sequences continue after the imported values. */
async function continueSequences(client: pg.ClientBase, schema: string, name: string): Promise<void> {
  const { rows } = await client.query<{ table: string; column: string; sequence: string }>(
    `select c.relname as table, a.attname as column,
            pg_get_serial_sequence(quote_ident(n.nspname) || '.' || quote_ident(c.relname), a.attname) as sequence
       from pg_attribute a join pg_class c on c.oid = a.attrelid join pg_namespace n on n.oid = c.relnamespace
      where n.nspname = $1 and c.relname = $2 and c.relkind = 'r' and a.attidentity <> ''`,
    [schema, name],
  )
  for (const { table, column, sequence } of rows)
    await client.query(
      `select setval($1, coalesce(max(${pg.escapeIdentifier(column)}), 0) + 1, false) from ${tableName(schema, table)}`,
      [sequence],
    )
}

import { constants } from 'node:fs'
import { mkdir, open, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { ExportedTable } from '@overlay/rpc'
import { migrationsOf, openClient } from '@overlay/store/postgres'
import pg from 'pg'
import { to } from 'pg-copy-streams'
import { type Measured, openMeter } from './meter.js'
import { copyTarget, tablesOf } from './tables.js'

export interface ExportOptions {
  /** The directory of all snapshots. */
  readonly snapshots: string
  /** The name from pg_export_snapshot. */
  readonly snapshot: string
  /** The directory of this snapshot, within `snapshots`. */
  readonly directory: string
  readonly maxBytes: number
}

/**
 * Writes the tables of a schema, as of an exported snapshot of the database, into one file each, readable by the owner
 * only. Streams rows to disk. Removes the files if it fails.
 */
export async function* exportSchema(
  url: string,
  schema: string,
  { snapshots, snapshot, directory, maxBytes }: ExportOptions,
  signal: AbortSignal,
): AsyncIterable<ExportedTable> {
  if (!/^[\w.-]+$/.test(directory) || directory.startsWith('.')) throw new Error('not the name of a snapshot')
  const folder = join(snapshots, directory, schema)
  await mkdir(folder, { recursive: true, mode: 0o700 })
  let isComplete = false
  try {
    await using connection = await openClient(url, { application_name: `${schema} export` })
    const { client } = connection
    await client.query('begin isolation level repeatable read, read only')
    await client.query(`set transaction snapshot ${pg.escapeLiteral(snapshot)}`)
    const migrations = [...(await migrationsOf(client, schema))]
    let left = maxBytes
    for (const { name, columns } of await tablesOf(client, schema)) {
      signal.throwIfAborted()
      const source = client.query(to(`copy ${copyTarget(schema, { name, columns })} to stdout`))
      const written = await write(source, join(folder, `${name}.copy`), left, signal)
      left -= written.bytes
      yield { name, columns: [...columns], rows: source.rowCount, ...written, migrations }
    }
    await sync(folder)
    isComplete = true
  } finally {
    if (!isComplete) await rm(folder, { recursive: true, force: true })
  }
}

async function write(
  source: Readable,
  path: string,
  maxBytes: number,
  signal: AbortSignal,
): Promise<Measured> {
  const { stream, measured } = openMeter(maxBytes)
  const file = await open(path, 'wx', 0o600)
  try {
    await pipeline(
      source,
      stream,
      async (chunks: AsyncIterable<Buffer>) => {
        for await (const chunk of chunks) await file.appendFile(chunk)
      },
      { signal },
    )
    await file.sync()
  } finally {
    await file.close()
  }
  return measured()
}

/** Makes the names of the files survive a crash. */
export async function sync(directory: string): Promise<void> {
  const handle = await open(directory, constants.O_RDONLY)
  await handle.sync().finally(() => handle.close())
}

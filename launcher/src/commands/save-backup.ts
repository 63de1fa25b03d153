import { mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import {
  checkContents,
  exportSchema,
  type Manifest,
  readManifest,
  type StoredSchema,
  type StoredTable,
  sync,
  writeManifest,
} from '@overlay/maintenance/snapshot'
import { withClient } from '@overlay/store/postgres/migrate'
import { passwordFile, secretsFile } from '../home/home-files.js'
import { requireKeySecrets } from '../home/key-secrets.js'
import { readSecrets } from '../home/secrets.js'
import { services } from '../servers/schemas.js'
import { exists, ignoreMissing } from '../system/files.js'

interface BackupOptions {
  readonly ownerUrl: string
  readonly home: string
  /** The directory of all backups. */
  readonly directory: string
  readonly signal: AbortSignal
}

export interface Backup {
  readonly path: string
  /** The point in time that it contains, in ISO 8601. */
  readonly at: string
  readonly rows: number
  readonly bytes: number
}

/**
 * Writes a snapshot of the database with the secrets that a restore needs, and reads all of it again. The directory
 * appears when it is complete, or not at all.
 */
export async function saveBackup({ ownerUrl, home, directory, signal }: BackupOptions): Promise<Backup> {
  const name = new Date().toISOString().replace(/[-:]|\.\d+/g, '')
  const [path, unfinished] = [join(directory, name), `${name}.unfinished`]
  const at = join(directory, unfinished)
  await mkdir(dirname(directory), { recursive: true }) // with the mode below, other accounts could not enter the parents
  await mkdir(directory, { recursive: true, mode: 0o700 })
  await mkdir(at, { mode: 0o700 })
  try {
    const manifest = await exportAll(ownerUrl, { snapshots: directory, directory: unfinished }, signal)
    await copyFiles(home, at)
    await writeManifest(at, manifest)
    await verify(at)
    signal.throwIfAborted()
    await rename(at, path)
    await sync(directory)
    const tables = Object.values(manifest.schemas).flatMap(({ tables }) => tables)
    const sum = (count: (table: StoredTable) => number): number =>
      tables.reduce((total, table) => total + count(table), 0)
    return { path, at: manifest.madeAt, rows: sum(({ rows }) => rows), bytes: sum(({ bytes }) => bytes) }
  } catch (err) {
    await rm(at, { recursive: true, force: true })
    throw err
  }
}

/** All schemas as of one point in time. */
const exportAll = (
  ownerUrl: string,
  place: { readonly snapshots: string; readonly directory: string },
  signal: AbortSignal,
): Promise<Manifest> =>
  withClient(ownerUrl, async (client) => {
    // the transaction keeps its snapshot available to the connections that export
    await client.query('begin isolation level repeatable read, read only')
    const { rows } = await client.query<{ snapshot: string; at: Date }>(
      'select pg_export_snapshot() as snapshot, transaction_timestamp() as at',
    )
    const [snapshot] = rows
    if (!snapshot) throw new Error('no snapshot of the database')
    const stored: [string, StoredSchema][] = []
    for (const schema of services) {
      const options = { ...place, snapshot: snapshot.snapshot, maxBytes: Number.MAX_SAFE_INTEGER }
      const tables: StoredTable[] = []
      let run: readonly string[] = []
      for await (const { migrations, ...table } of exportSchema(ownerUrl, schema, options, signal)) {
        run = migrations
        tables.push(table)
      }
      if (run.length === 0) throw new Error(`the database has no schema ${schema}: start the product once`)
      stored.push([schema, { migrations: run, tables }])
    }
    return { format: 1, madeAt: snapshot.at.toISOString(), schemas: Object.fromEntries(stored) }
  })

async function copyFiles(home: string, directory: string): Promise<void> {
  for (const name of [secretsFile, passwordFile]) {
    const content = await readFile(join(home, name)).catch(ignoreMissing)
    if (content) await writeFile(join(directory, name), content, { mode: 0o600, flush: true })
  }
}

async function verify(directory: string): Promise<void> {
  const manifest = await readManifest(directory)
  await checkContents(directory, manifest)
  const stored = await readSecrets(join(directory, secretsFile))
  if (!stored) throw new Error(`the home has no ${secretsFile}`)
  await requireKeySecrets(directory, manifest, stored.secrets).catch((cause: unknown) => {
    throw new Error(`${secretsFile} of the home is not that of this database`, { cause })
  })
}

async function backupsIn(directory: string): Promise<readonly string[]> {
  const names = (await readdir(directory)).filter((name) => /^\d{8}T\d{6}Z$/.test(name)).sort()
  const areBackups = await Promise.all(names.map((name) => exists(join(directory, name, secretsFile))))
  return names.filter((_, at) => areBackups[at])
}

/** Removes all but the newest backups of a directory, and returns the names of those that it has removed. */
export async function removeOldBackups(directory: string, keep: number): Promise<readonly string[]> {
  const names = await backupsIn(directory)
  const old = names.slice(0, Math.max(0, names.length - keep))
  for (const name of old) {
    // an interrupted removal must not leave what looks like a backup
    const unfinished = join(directory, `${name}.unfinished`)
    await rename(join(directory, name), unfinished)
    await rm(unfinished, { recursive: true })
  }
  return old
}

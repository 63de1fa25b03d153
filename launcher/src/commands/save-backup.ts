import { mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import {
  checkContents,
  collectSchema,
  exportSchema,
  type Manifest,
  nameOfTime,
  readManifest,
  type StoredSchema,
  type StoredTable,
  saveDirectory,
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
  await mkdir(dirname(directory), { recursive: true }) // with the mode of backups, other accounts could not enter the parents
  const name = nameOfTime(new Date())
  const { madeAt, schemas } = await saveDirectory(directory, name, async (unfinished, path) => {
    const manifest = await exportAll(ownerUrl, { snapshots: directory, directory: unfinished }, signal)
    await copyFiles(home, path)
    await writeManifest(path, manifest)
    await verify(path)
    signal.throwIfAborted()
    return manifest
  })
  const tables = Object.values(schemas).flatMap(({ tables }) => tables)
  const sum = (count: (table: StoredTable) => number): number =>
    tables.reduce((total, table) => total + count(table), 0)
  return {
    path: join(directory, name),
    at: madeAt,
    rows: sum(({ rows }) => rows),
    bytes: sum(({ bytes }) => bytes),
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
      const exported = await collectSchema(exportSchema(ownerUrl, schema, options, signal))
      if (exported.migrations.length === 0)
        throw new Error(`the database has no schema ${schema}: start the product once`)
      stored.push([schema, exported])
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

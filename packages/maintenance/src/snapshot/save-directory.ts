import { mkdir, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { ExportedTable } from '@overlay/rpc'
import { sync } from './export.js'
import type { StoredSchema, StoredTable } from './manifest.js'

export const UNFINISHED = '.unfinished'

/** The name of a snapshot of this time, such as 20260112T093000Z. */
export const nameOfTime = (time: Date): string => time.toISOString().replace(/[-:]|\.\d+/g, '')

/**
 * Writes a directory that appears when it is complete, or not at all.
 * @param write gets the name of the unfinished directory, and its path
 */
export async function saveDirectory<T>(
  parent: string,
  name: string,
  write: (unfinished: string, path: string) => Promise<T>,
): Promise<T> {
  const path = join(parent, name + UNFINISHED)
  await mkdir(parent, { recursive: true, mode: 0o700 })
  await mkdir(path, { mode: 0o700 })
  try {
    const result = await write(name + UNFINISHED, path)
    await rename(path, join(parent, name))
    await sync(parent)
    return result
  } catch (err) {
    await rm(path, { recursive: true, force: true })
    throw err
  }
}

/** What the manifest says about an exported schema. Without tables: no migrations. */
export async function collectSchema(exported: AsyncIterable<ExportedTable>): Promise<StoredSchema> {
  const tables: StoredTable[] = []
  let run: readonly string[] = []
  for await (const { migrations, ...table } of exported) {
    run = migrations
    tables.push(table)
  }
  return { migrations: run, tables }
}

import { readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Context } from '@overlay/rpc'
import {
  checkSizes,
  collectSchema,
  type Manifest,
  nameOfTime,
  saveDirectory,
  writeManifest,
} from '../snapshot/index.js'
import type { JobDeps, Maintenance } from './jobs.js'
import { activeRuns, beginSnapshot, endSnapshot, type Run } from './stored-runs.js'

/** Of a process with a directory of snapshots. */
interface SnapshotDeps extends JobDeps {
  readonly snapshots: string
}

/** Saves all schemas as of one point in time: a directory that appears when it is complete. Returns its name. */
export async function saveSnapshot(deps: SnapshotDeps, run: Run, context: Context): Promise<string> {
  const { snapshots, maintenance, snapshotMaxBytes: maxBytes } = deps
  await removeUnfinished(deps)
  const name = `${nameOfTime(new Date())}-${run.id}`
  await saveDirectory(snapshots, name, async (directory, path) => {
    // all services read the snapshot of this transaction, which stays open until the last one has finished
    const { snapshot, at } = await beginSnapshot(run)
    const request = { snapshot, directory, maxBytes }
    const manifest: Manifest = {
      format: 1,
      madeAt: at.toISOString(),
      schemas: await exportAll(maintenance, request, context),
    }
    await endSnapshot(run)
    await checkSizes(path, manifest)
    await writeManifest(path, manifest)
    await run.lock.confirm() // fails when another replica may have begun a snapshot
  })
  return name
}

type ExportRequest = Parameters<Maintenance[string]['export']>[0]

/** Exports all schemas at once. When one fails it aborts the others, and returns when they have ended. */
async function exportAll(
  maintenance: Maintenance,
  request: ExportRequest,
  context: Context,
): Promise<Manifest['schemas']> {
  const abort = new AbortController()
  const shared = { ...context, signal: AbortSignal.any([context.signal, abort.signal]) }
  const exports = Object.entries(maintenance).map(async ([schema, service]) => {
    try {
      const stored = await collectSchema(service.export(request, shared))
      shared.signal.throwIfAborted() // an aborted stream ends like a complete one
      return [schema, stored] as const
    } catch (err) {
      abort.abort(err)
      throw err
    }
  })
  await Promise.allSettled(exports)
  const stored = await Promise.all(exports)
  const tables = stored.flatMap(([, { tables }]) => tables)
  const bytes = tables.reduce((sum, { bytes }) => sum + bytes, 0)
  if (bytes > request.maxBytes) throw new Error(`more than ${request.maxBytes} bytes`)
  return Object.fromEntries(stored)
}

/** Removes the directories of replicas that died during a snapshot. */
export async function removeUnfinished({
  db,
  snapshots,
}: Pick<SnapshotDeps, 'db' | 'snapshots'>): Promise<void> {
  const names = await readdir(snapshots).catch((err: NodeJS.ErrnoException) => {
    if (err.code === 'ENOENT') return []
    throw err
  })
  const unfinished = names.flatMap((name) => {
    const run = /^\w+-([\da-f-]{36})\.unfinished$/.exec(name)?.[1]
    return run === undefined ? [] : [{ name, run }]
  })
  if (unfinished.length === 0) return
  const active = await activeRuns(
    db,
    unfinished.map(({ run }) => run),
  )
  for (const { name, run } of unfinished)
    if (!active.has(run)) await rm(join(snapshots, name), { recursive: true, force: true })
}

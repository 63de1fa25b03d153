import { mkdir, readdir, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { untilAborted } from '@overlay/platform/async'
import {
  checkSizes,
  type Manifest,
  type StoredSchema,
  type StoredTable,
  writeManifest,
} from '@overlay/platform/snapshot'
import type { Context, IdentityServiceService, Methods } from '@overlay/rpc'
import sql from 'sql-template-tag'
import { living, type Run } from '../store/job-runs.js'
import type { JobGrounds, Jobs, Owners } from './jobs.js'

export interface SnapshotGrounds extends JobGrounds {
  /** Directory of all snapshots. */
  readonly snapshots: string
  readonly limitMs: number
  readonly maxBytes: number
}

const UNFINISHED = '.unfinished'

/** Saves all schemas as they are at one point in time: a directory that appears when it is whole. */
export function takeSnapshot(
  grounds: SnapshotGrounds,
  jobs: Jobs,
): Methods<IdentityServiceService>['takeSnapshot'] {
  const { limitMs } = grounds
  return async (_request, context) => {
    const { ended } = await jobs.start('snapshot', false, limitMs, context, (run, own) =>
      save(grounds, run, own),
    )
    return { name: await Promise.race([ended, untilAborted(context.signal, 'the snapshot goes on')]) }
  }
}

async function save(grounds: SnapshotGrounds, run: Run, context: Context): Promise<string> {
  const { snapshots, owners, maxBytes } = grounds
  await removeUnfinished(grounds)
  const name = `${new Date().toISOString().replace(/[-:]|\.\d+/g, '')}-${run.id}`
  const directory = join(snapshots, name + UNFINISHED)
  await mkdir(directory, { recursive: true, mode: 0o700 })
  try {
    // all read as of this transaction, which lasts until the last of them is done
    await run.held.query(sql`begin isolation level repeatable read, read only`)
    const [exported] = await run.held.query<{ snapshot: string; at: Date }>(
      sql`select pg_export_snapshot() as snapshot, transaction_timestamp() as at`,
    )
    if (!exported) throw new Error('no snapshot was exported')
    const { snapshot, at } = exported
    const request = { snapshot, directory: name + UNFINISHED, maxBytes }
    const manifest: Manifest = {
      format: 1,
      madeAt: at.toISOString(),
      schemas: await exportAll(owners, request, context),
    }
    await run.held.query(sql`commit`)
    await checkSizes(directory, manifest)
    await writeManifest(directory, manifest)
    await run.held.confirm() // if somebody else is at it by now, this one comes too late
    await rename(directory, join(snapshots, name))
    return name
  } catch (err) {
    await rm(directory, { recursive: true, force: true })
    throw err
  }
}

type ExportRequest = Parameters<Owners[string]['export']>[0]

/** All at once. When one fails the others are given up, and have come to their end when this one does. */
async function exportAll(
  owners: Owners,
  request: ExportRequest,
  context: Context,
): Promise<Manifest['schemas']> {
  const giveUp = new AbortController()
  const shared = { ...context, signal: AbortSignal.any([context.signal, giveUp.signal]) }
  const exports = Object.entries(owners).map(async ([schema, owner]) => {
    try {
      return [schema, await exportOne(owner, request, shared)] as const
    } catch (err) {
      giveUp.abort(err)
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

async function exportOne(
  owner: Owners[string],
  request: ExportRequest,
  context: Context,
): Promise<StoredSchema> {
  const tables: StoredTable[] = []
  let known: readonly string[] = []
  for await (const { migrations, ...table } of owner.export(request, context)) {
    known = migrations
    tables.push(table)
  }
  context.signal.throwIfAborted() // a stream that was given up ends like one that is at its end
  return { migrations: known, tables }
}

/** What a replica has left behind that died while it was at it. */
export async function removeUnfinished({ db, snapshots }: SnapshotGrounds): Promise<void> {
  const names = await readdir(snapshots).catch((err: NodeJS.ErrnoException) => {
    if (err.code === 'ENOENT') return []
    throw err
  })
  const left = names.flatMap((name) => {
    const run = /^\w+-([\da-f-]{36})\.unfinished$/.exec(name)?.[1]
    return run === undefined ? [] : [{ name, run }]
  })
  if (left.length === 0) return
  const alive = await living(
    db,
    left.map(({ run }) => run),
  )
  for (const { name, run } of left)
    if (!alive.has(run)) await rm(join(snapshots, name), { recursive: true, force: true })
}

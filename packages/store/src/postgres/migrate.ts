import { createHash } from 'node:crypto'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { build } from '@overlay/process'
import pg from 'pg'
import type { Logger } from 'pino'
import { codeOf, endWithMachine, openClient, withClient } from './client.js'
import { isOlder, OLDEST_RELEASE } from './releases.js'

export { endWithMachine, withClient } from './client.js'
export { tlsWarning, withTlsDirectory } from './connection.js'
export { isUnavailable } from './database-failure.js'
export { ForeignDatabase, requireOwnKeys } from './require-own-keys.js'
export { MissingRights, prepareSchemas, type ServiceSchema } from './schemas.js'

/** The folders of a schema's migrations: that of its service, and the one that all schemas share. */
export const migrationFolders = (own: string): readonly string[] => [
  join(own, '../../../packages/store/migrations'),
  own,
]

/** What decides whether a program works with a schema that is newer than itself. */
export interface Releases {
  /** The release of the program. */
  readonly release?: string
  /** The oldest release that works with the migrations of the program. */
  readonly oldest?: string
}

export interface MigrateOptions extends Releases {
  /** Called once if a migration has to wait for a lock that a dump or another migrating process holds. */
  readonly onLocked?: (schema: string) => void
}

/**
 * Brings one schema up to date, unless the next release has done so. Any number of replicas may call it at once: the
 * others wait.
 */
export async function migrate(
  url: string,
  schema: string,
  folders: readonly string[],
  { release, oldest = OLDEST_RELEASE, onLocked }: MigrateOptions = {},
): Promise<void> {
  const defined = await migrationsIn(folders)
  const { run, missing, isNewer } = await withClient(url, (client) =>
    stateOf(client, schema, defined, release),
  )
  const [next] = missing
  if (next !== undefined && next < (run.at(-1) ?? ''))
    throw new Error(`migration ${next} of schema ${schema} comes before ${run.at(-1)}`)
  if (isNewer) return
  // before the migrations, so that no process that is too old starts between them
  if (run.length > 0) await recordOldest(url, schema, oldest)
  if (next !== undefined)
    await runUnlocked(
      () => runMigrations(url, schema, folders),
      () => onLocked?.(schema),
    )
  if (run.length === 0) await recordOldest(url, schema, oldest)
}

/** Brings one schema to these migrations, which another database had run, though there may be later ones. */
export async function migrateTo(
  url: string,
  schema: string,
  folders: readonly string[],
  target: readonly string[],
): Promise<void> {
  const defined = await migrationsIn(folders)
  if (isBeyond(target, defined)) throw newerError(schema, target, defined)
  if (defined.slice(0, target.length).join() !== target.join())
    throw new Error(`this program does not know the migrations of schema ${schema} as they were run`)
  const run = await withClient(url, (client) => migrationsOf(client, schema))
  if (run.length < target.length)
    await runUnlocked(() => runMigrations(url, schema, folders, target.length - run.length))
}

const LOCK_TIMEOUT = '2s'
const LOCKED_PAUSE_MS = 3000
const LOCK_NOT_AVAILABLE = '55P03'

/**
 * A migration that waits for a table which a dump is reading holds up all statements on it that come later. So it gives up
 * soon, lets them pass, and tries again.
 */
async function runUnlocked(run: () => Promise<void>, onLocked?: () => void): Promise<void> {
  for (let isFirst = true; ; isFirst = false) {
    try {
      return await run()
    } catch (err) {
      if (codeOf(err) !== LOCK_NOT_AVAILABLE) throw err
      if (isFirst) onLocked?.()
      await delay(LOCKED_PAUSE_MS)
    }
  }
}

async function runMigrations(
  url: string,
  schema: string,
  folders: readonly string[],
  count = Infinity,
): Promise<void> {
  const { runner } = await import('node-pg-migrate') // costs more than all the rest, and is rarely needed
  // with a client of its own, the library would end the process when the connection is lost
  await using connection = await openClient(url, { options: `-c lock_timeout=${LOCK_TIMEOUT}` })
  await endWithMachine(connection.client)
  await runner({
    dbClient: connection.client,
    dir: folders.map((folder) => `${folder.replace(/[?*()[\]{}]/g, '[$&]')}/*.sql`),
    useGlob: true,
    schema,
    migrationsSchema: schema,
    migrationsTable: TABLE,
    direction: 'up',
    count,
    checkOrder: false, // `migrate` has checked the order
    advisoryLockMode: 'wait', // the library's default is to fail
    lockValue: createHash('sha256').update(schema).digest().readUIntBE(0, 6),
    log: () => undefined,
  })
}

/**
 * For a service, whose role may not change tables: waits until the launcher or the migration job has run these
 * migrations, and those by which the schemas `heads` publish the ends of their change logs. A schema of a later release
 * than the next one is refused.
 */
export async function untilMigrated(
  url: string,
  schema: string,
  defined: readonly string[],
  {
    log,
    signal,
    release,
    heads = [],
  }: Pick<Releases, 'release'> & {
    readonly log?: Logger
    readonly signal?: AbortSignal
    readonly heads?: readonly string[]
  } = {},
): Promise<void> {
  let logged: string | undefined
  for (;;) {
    const waitingFor = await withClient(url, async (client) => {
      const { run, missing, isNewer } = await stateOf(client, schema, defined, release)
      if (isNewer) log?.warn({ schema, migration: run.at(-1) }, 'schema belongs to the next release')
      return missing.at(-1) ?? (await unpublished(client, heads))
    }).catch((err: unknown) => {
      if (!mayPass(err)) throw err
      return (err as Error).message
    })
    if (waitingFor === undefined) return
    if (waitingFor !== logged) log?.info({ schema, waitingFor }, 'waiting for the schema')
    logged = waitingFor
    await delay(200, undefined, { signal })
  }
}

/** A schema that does not publish its head yet. */
async function unpublished(client: pg.ClientBase, schemas: readonly string[]): Promise<string | undefined> {
  const { rows } = await client.query<{ head: string }>(
    `select head from unnest($1::text[]) as head where to_regclass(head) is null`,
    [schemas.map((schema) => `${pg.escapeIdentifier(schema)}.head`)],
  )
  return rows[0]?.head
}

const TABLE = 'migration'
const tableOf = (schema: string): string => `${pg.escapeIdentifier(schema)}.${TABLE}`

/** The names of all migrations in these folders, without ending, in order. */
export async function migrationsIn(folders: readonly string[]): Promise<readonly string[]> {
  const files = (await Promise.all(folders.map((folder) => readdir(folder)))).flat()
  return files
    .filter((file) => file.endsWith('.sql'))
    .map((file) => file.slice(0, -'.sql'.length))
    .sort()
}

/** The migrations that the schema has run, in order. */
export async function migrationsOf(client: pg.ClientBase, schema: string): Promise<readonly string[]> {
  const { rows: found } = await client.query<{ oid: number | null }>('select to_regclass($1)::oid as oid', [
    tableOf(schema),
  ])
  if (!found[0]?.oid) return [] // a failed select would leave an error in the log of the server
  const { rows } = await client.query<{ name: string }>(`select name from ${tableOf(schema)}`)
  return rows.map(({ name }) => name).sort()
}

/** How a schema compares with the migrations of a program. */
export interface SchemaState {
  readonly run: readonly string[]
  readonly missing: readonly string[]
  /** The schema is that of the next release, which works with this one. */
  readonly isNewer: boolean
}

/** Compares a schema with these migrations. Refuses one of a later release than the next one. */
export async function stateOf(
  client: pg.ClientBase,
  schema: string,
  defined: readonly string[],
  release = build.version,
): Promise<SchemaState> {
  const run = await migrationsOf(client, schema)
  const missing = defined.filter((name) => !run.includes(name))
  const isNewer = isBeyond(run, defined)
  if (isNewer) {
    const oldest = await oldestOf(client, schema)
    if (missing.length > 0 || oldest === undefined || isOlder(release, oldest))
      throw newerError(schema, run, defined, oldest)
  }
  return { run, missing, isNewer }
}

const isBeyond = (run: readonly string[], defined: readonly string[]): boolean =>
  (run.at(-1) ?? '') > (defined.at(-1) ?? '')

function newerError(
  schema: string,
  run: readonly string[],
  defined: readonly string[],
  oldest?: string,
): Error {
  const requirement = oldest === undefined ? '' : `: release ${oldest} or newer is required`
  return new Error(
    `schema ${schema} is at ${run.at(-1)}, this program knows it up to ${defined.at(-1)}${requirement}`,
  )
}

/** The oldest release that works with the schema is in the comment of its table of migrations. */
async function recordOldest(url: string, schema: string, oldest: string): Promise<void> {
  await withClient(url, async (client) => {
    if ((await oldestOf(client, schema)) === oldest) return
    const comment = pg.escapeLiteral(`works with releases from ${oldest}`)
    await client.query(`comment on table ${tableOf(schema)} is ${comment}`)
  })
}

async function oldestOf(client: pg.ClientBase, schema: string): Promise<string | undefined> {
  const { rows } = await client.query<{ comment: string | null }>(
    `select obj_description(to_regclass($1), 'pg_class') as comment`,
    [tableOf(schema)],
  )
  return /^works with releases from (\S+)$/.exec(rows[0]?.comment ?? '')?.[1]
}

// no rights yet, no such role or password or schema yet, server starting; all errors of the network and of TLS
const mayPass = (err: unknown): boolean =>
  /^(42501|28...|3[DF]000|57P0.|53...|08...|E[A-Z_]+|ERR_SSL_.+|CERT_\w+|SELF_SIGNED_\w+|DEPTH_ZERO_\w+|UNABLE_TO_\w+)$/.test(
    codeOf(err),
  ) || /^(Connection terminated|timeout)/.test((err as Error).message)

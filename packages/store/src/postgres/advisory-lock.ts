import { openSerial } from '@overlay/process/async'
import type pg from 'pg'
import sql, { type Sql } from 'sql-template-tag'
import { LOCK_BEAT_MS, LOCK_IDLE_MS } from '../limits.js'
import { openClient } from './client.js'

/** A connection of its own that keeps every lock it takes until it ends. */
export interface LockConnection extends AsyncDisposable {
  /** Aborted when the connection, and with it every lock, is lost. */
  readonly lost: AbortSignal
  /** Resolves when no other connection holds the lock. */
  lock(name: string): Promise<void>
  /** False: another connection holds the lock. */
  tryLock(name: string): Promise<boolean>
  query<Row extends pg.QueryResultRow>(query: Sql): Promise<readonly Row[]>
  /** Fails unless the connection is alive now. */
  confirm(): Promise<void>
}

/** The connection that holds one advisory lock. */
export type AdvisoryLock = Omit<LockConnection, 'lock' | 'tryLock'>

export interface LockConnectionOptions {
  readonly applicationName?: string
  /** False: a commit does not wait until it is on disk. */
  readonly synchronousCommit?: boolean
  readonly beatMs?: number
  readonly idleSessionMs?: number
}

/**
 * Opens a connection for advisory locks. A process that dies loses them at once; one that hangs, or whose host is gone,
 * when the connection has been silent for half a minute.
 */
export async function openLockConnection(
  url: string,
  schema: string,
  {
    applicationName = `${schema} job`,
    synchronousCommit = true,
    beatMs = LOCK_BEAT_MS,
    idleSessionMs = LOCK_IDLE_MS,
  }: LockConnectionOptions = {},
): Promise<LockConnection> {
  const connection = await openClient(url, {
    application_name: applicationName,
    options:
      `-c search_path=${schema} -c idle_session_timeout=${idleSessionMs} -c idle_in_transaction_session_timeout=${idleSessionMs}` +
      (synchronousCommit ? '' : ' -c synchronous_commit=off'),
    query_timeout: idleSessionMs,
    keepAlive: true,
  })
  const { client } = connection
  const lost = new AbortController()
  const lose = (cause?: unknown): void => lost.abort(new Error('the lock of this job is lost', { cause }))
  client.on('error', lose).on('end', lose)
  const serially = openSerial() // the driver takes one query at a time
  const query = async <Row extends pg.QueryResultRow>({ text, values }: Sql): Promise<readonly Row[]> =>
    (await serially(() => client.query<Row>(text, values))).rows
  const beat = () => query(sql`select`)
  const beating = setInterval(() => beat().catch(lose), beatMs)
  return {
    lost: lost.signal,
    query,
    async lock(name) {
      await query(sql`select pg_advisory_lock(hashtextextended(${name}, 0))`)
    },
    async tryLock(name) {
      const [row] = await query<{ locked: boolean }>(
        sql`select pg_try_advisory_lock(hashtextextended(${name}, 0)) as locked`,
      )
      return row?.locked ?? false
    },
    async confirm() {
      lost.signal.throwIfAborted()
      await beat()
    },
    async [Symbol.asyncDispose]() {
      clearInterval(beating)
      client.off('end', lose)
      await connection[Symbol.asyncDispose]()
    },
  }
}

/** A connection that holds this lock; waits until no other connection does. */
export async function openAdvisoryLock(
  url: string,
  schema: string,
  name: string,
  options?: LockConnectionOptions,
): Promise<AdvisoryLock> {
  const connection = await openLockConnection(url, schema, options)
  try {
    await connection.lock(name)
  } catch (err) {
    await connection[Symbol.asyncDispose]()
    throw err
  }
  return connection
}

/** Whether a connection to this database holds the lock, as SQL. */
export const isLocked = (name: Sql): Sql => sql`
  exists (select from pg_locks
           where locktype = 'advisory' and granted and objsubid = 1
             and database = (select oid from pg_database where datname = current_database())
             and (classid::bigint << 32 | objid::bigint) = hashtextextended(${name}, 0))`

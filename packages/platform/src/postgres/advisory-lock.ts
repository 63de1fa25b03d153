import type pg from 'pg'
import sql, { type Sql } from 'sql-template-tag'
import { openSerial } from '../async/serial.js'
import { openClient } from './client.js'

/** A name that everybody can see as held, for as long as this process lives and says so. */
export interface AdvisoryLock extends AsyncDisposable {
  /** Aborted when nobody can see it any more. */
  readonly lost: AbortSignal
  /** On the connection that holds the name. */
  query<Row extends pg.QueryResultRow>(query: Sql): Promise<readonly Row[]>
  /** Fails unless the name is held now. */
  confirm(): Promise<void>
}

const BEAT_MS = 5000
const IDLE_SESSION_MS = 30_000 // a server that has heard nothing for so long ends the connection, and with it the lock

/**
 * An advisory lock on a connection of its own. A process that dies loses it at once; one that hangs, or whose host is
 * gone, when the server has heard nothing for half a minute.
 */
export async function openAdvisoryLock(
  url: string,
  schema: string,
  name: string,
  {
    beatMs = BEAT_MS,
    idleSessionMs = IDLE_SESSION_MS,
  }: { readonly beatMs?: number; readonly idleSessionMs?: number } = {},
): Promise<AdvisoryLock> {
  const connection = await openClient({
    connectionString: url,
    application_name: `${schema} job`,
    options: `-c search_path=${schema} -c idle_session_timeout=${idleSessionMs} -c idle_in_transaction_session_timeout=${idleSessionMs}`,
    query_timeout: idleSessionMs,
    keepAlive: true,
  })
  const { client } = connection
  const lost = new AbortController()
  const lose = (cause?: unknown): void => lost.abort(new Error('the lock of this job is lost', { cause }))
  client.on('error', lose).on('end', lose)
  const serially = openSerial() // the driver takes one query at a time
  const beat = () => serially(() => client.query('select'))
  const beating = setInterval(() => beat().catch(lose), beatMs)
  try {
    await serially(() => client.query('select pg_advisory_lock(hashtextextended($1, 0))', [name]))
  } catch (err) {
    clearInterval(beating)
    await connection[Symbol.asyncDispose]()
    throw err
  }
  return {
    lost: lost.signal,
    async query<Row extends pg.QueryResultRow>({ text, values }: Sql) {
      return (await serially(() => client.query<Row>(text, values))).rows
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

/** Whether somebody holds the name, as SQL; of another database it may be the same. */
export const isLocked = (name: Sql): Sql => sql`
  exists (select from pg_locks
           where locktype = 'advisory' and granted and objsubid = 1
             and database = (select oid from pg_database where datname = current_database())
             and (classid::bigint << 32 | objid::bigint) = hashtextextended(${name}, 0))`

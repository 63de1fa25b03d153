import { setTimeout as delay } from 'node:timers/promises'
import { metrics, pools } from '@overlay/process'
import { Fault, tracing } from '@overlay/rpc'
import pg from 'pg'
import type { Logger } from 'pino'
import type { Sql } from 'sql-template-tag'
import {
  CONFLICT_PAUSE_MS,
  CONNECTION_SECONDS,
  GRACE_MS,
  IDLE_MS,
  POOL_SIZE,
  STATEMENT_MS,
  UNUSED_MS,
} from '../limits.js'
import { connectionOf } from './connection.js'
import { type Failure, failureOf, isConflict, wasEnded } from './database-failure.js'
import { type Database, type Db, ofClients, type ofStrangers, type Tx } from './db.js'
import { clientTexts, ownTexts, preparedNames } from './prepared.js'
import { tracedDatabase } from './traced-database.js'

export * from './db.js'

export interface DatabaseOptions {
  /** Connections. */
  readonly max?: number
  /** The lifetime of a connection. */
  readonly connectionSeconds?: number
  readonly log?: Logger
}

/** Connects on demand. Fails if the files for TLS are unusable. A database that is unavailable or late is a Fault. The pool recovers by itself. */
export function openDatabase(
  url: string,
  schema: string,
  { max = POOL_SIZE, connectionSeconds = CONNECTION_SECONDS, log }: DatabaseOptions = {},
): Database {
  const config: pg.PoolConfig = {
    ...connectionOf(url, log),
    application_name: schema,
    // compiling a statement of a login takes longer than a second, and each connection compiles for itself
    options: `-c search_path=${schema} -c jit=off`,
    max,
    types,
    connectionTimeoutMillis: 5000,
    idleTimeoutMillis: UNUSED_MS,
    statement_timeout: STATEMENT_MS,
    idle_in_transaction_session_timeout: IDLE_MS,
    keepAlive: true,
    maxLifetimeSeconds: connectionSeconds,
  }
  const pool = openPool(config)
  const [nameOf, listNameOf] = [preparedNames(ownTexts), preparedNames(clientTexts)]
  const namesFor = (origin: typeof ofClients | typeof ofStrangers | undefined) =>
    origin === undefined ? nameOf : origin === ofClients ? listNameOf : () => undefined
  const statement = ({ text, values }: Sql, origin: Parameters<Db['query']>[1], ms: number): Timed => {
    const name = typeof origin === 'string' ? origin : namesFor(origin)(text)
    return { text, values, ...(name !== undefined && { name }), query_timeout: ms + GRACE_MS }
  }

  const connect = (): Promise<pg.PoolClient> =>
    pool.connect().catch((err: unknown) => {
      throw failureOf(err).error
    })

  async function using<T>(client: pg.PoolClient, use: (client: pg.PoolClient) => Promise<T>): Promise<T> {
    let failure: Failure | undefined
    try {
      return await use(client)
    } catch (err) {
      failure = failureOf(err)
      throw failure.error
    } finally {
      client.release(failure?.connectionIsLost ?? false)
    }
  }

  /** Repeats `use` on another connection if the administrator has ended its own, as during a renewal of certificates. */
  async function onConnection<T>(
    take: () => Promise<pg.PoolClient>,
    use: (client: pg.PoolClient) => Promise<T>,
  ): Promise<T> {
    for (let ended = 0; ; ended++) {
      const client = await take()
      try {
        return await using(client, use)
      } catch (err) {
        if (!wasEnded(err) || ended === max) throw err
        metrics.databaseRepeated.inc({ schema })
      }
    }
  }

  /** One transaction, from after its `begin` to its end. */
  async function attempt<T>(
    client: pg.PoolClient,
    left: () => number,
    work: (tx: Tx) => Promise<T>,
  ): Promise<T> {
    let over = false
    const tx: Tx = {
      inTransaction: true,
      async query(query, name) {
        if (over) throw new Error('the transaction is over')
        return client.query(statement(query, name, left()))
      },
    }
    try {
      const result = await work(tx)
      left()
      over = true
      await client.query(command('commit'))
      return result
    } catch (err) {
      over = true
      if (!failureOf(err).connectionIsLost) await client.query(command('rollback'))
      throw err
    }
  }

  async function repeatedOnce<T>(work: () => Promise<T>, again?: () => Promise<void>): Promise<T> {
    try {
      return await work()
    } catch (err) {
      if (!isConflict(err)) throw err
      metrics.databaseRepeated.inc({ schema })
      await delay(CONFLICT_PAUSE_MS * (1 + Math.random()))
      await again?.()
      return work()
    }
  }

  /** The first attempt has begun its transaction already. */
  const transact = <T>(client: pg.PoolClient, left: () => number, work: (tx: Tx) => Promise<T>): Promise<T> =>
    repeatedOnce(
      () => attempt(client, left, work),
      async () => {
        await client.query(beginning(left()))
      },
    )

  /** A connection that was lost unnoticed fails its first statement. Nothing has happened then: try another one. */
  async function connectWith(first: () => Timed): Promise<pg.PoolClient> {
    for (let ended = 0; ; ended++) {
      const client = await connect()
      try {
        await client.query(first())
        return client
      } catch (err) {
        const { error, connectionIsLost } = failureOf(err)
        client.release(connectionIsLost)
        if (!(error instanceof Fault && error.code === 'UNAVAILABLE') || ended === max) throw error
      }
    }
  }

  const database: Database = {
    schema,
    query: (query, name) =>
      onConnection(connect, (client) =>
        repeatedOnce(() => client.query(statement(query, name, STATEMENT_MS))),
      ),

    async transaction(deadline, work) {
      const left = timeLeft(deadline)
      return onConnection(
        () => connectWith(() => beginning(left())),
        (client) => transact(client, left, work),
      )
    },

    async withAdvisoryLock(name, work) {
      const key = `hashtextextended(${pg.escapeLiteral(name)}, 0)`
      const lock = command(`set idle_session_timeout = ${IDLE_MS}; select pg_advisory_lock(${key})`)
      const unlock = command(`select pg_advisory_unlock(${key}); reset idle_session_timeout`)
      return using(await connectWith(() => lock), async (client) => {
        try {
          const result = await work({
            query: (query, name) => client.query(statement(query, name, STATEMENT_MS)),
            async transaction(work) {
              const left = timeLeft()
              await client.query(beginning(left()))
              return transact(client, left, work)
            },
          })
          await client.query(unlock)
          return result
        } catch (err) {
          if (!failureOf(err).connectionIsLost) await client.query(unlock)
          throw err
        }
      })
    },

    async [Symbol.asyncDispose]() {
      pools.delete(pool)
      await pool.end()
    },
  }
  return tracing ? tracedDatabase(tracing, database) : database
}

/** In milliseconds, at each call; TIMEOUT when there is none. */
function timeLeft(deadline?: Date): () => number {
  const until = deadline?.getTime() ?? Date.now() + STATEMENT_MS
  return () => {
    const ms = until - Date.now()
    if (ms <= 0) throw new Fault('TIMEOUT')
    return ms
  }
}

export function onlyRow<Row>(rows: readonly Row[]): Row {
  const [row] = rows
  if (row === undefined || rows.length > 1) throw new Error(`one row expected, ${rows.length} found`)
  return row
}

interface Timed extends pg.QueryConfig {
  readonly query_timeout: number
}

const beginning = (ms: number): Timed => command(`begin; set local statement_timeout = ${ms}`)

const command = (text: string): Timed => ({ text, query_timeout: STATEMENT_MS })

/** A broken connection fails its query, and leaves the pool if it is idle. */
const ignore = (): void => undefined

const INT8 = pg.types.builtins.INT8

/** The driver's types (timestamptz: Date), but int8 as a number where that is exact. */
const types: pg.CustomTypesConfig = {
  getTypeParser: (oid: number, format?: 'text' | 'binary') =>
    oid === INT8 && format !== 'binary' ? int8 : pg.types.getTypeParser(oid, format),
}

function openPool(config: pg.PoolConfig): pg.Pool {
  const pool = new pg.Pool(config)
  pool.on('connect', (client) => client.on('error', ignore))
  pool.on('error', ignore)
  pools.add(pool)
  return pool
}

function int8(text: string): number | string {
  const number = Number(text)
  return Number.isSafeInteger(number) ? number : text
}

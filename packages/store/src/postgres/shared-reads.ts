import type { Duplex } from 'node:stream'
import { Fault } from '@overlay/rpc'
import type pg from 'pg'
import { codeOf } from './client.js'
import { failureOf } from './database-failure.js'

type Statement = pg.QueryConfig & { readonly name: string }

/** A connection on which each read is sent without waiting for the answers to those before it. */
export interface SharedReads {
  /** Whether a read of this prepared statement may be sent now. */
  takes(name: string): boolean
  /** `lost`: the connection failed, perhaps because of another read. Repeat the read elsewhere. */
  query<Row extends pg.QueryResultRow>(statement: Statement): Promise<pg.QueryResult<Row> | 'lost'>
  /** How long an execution took on another connection. */
  record(name: string, ms: number): void
  /** The connection leads to a server that may no longer be the right one: later reads use a new connection. */
  renew(): void
}

/** The server executes them one after the other; more under way are worth another connection. */
const MOST_UNDER_WAY = 16
/** Later reads do not wait behind one that has been executing for so long. */
export const STALLED_MS = 50
const MAX_NAMES = 1000
/** SQLSTATE: no such prepared statement, or one that exists. A Parse has failed whose Bind others had sent already. */
const unprepared: ReadonlySet<string> = new Set(['26000', '42P05'])

/** The connection while reads are under way on it. */
interface Hold {
  readonly client: Promise<pg.PoolClient>
  underWay: number
  executing: number
  /** When the read began that the server executes now. */
  executingSince: number
  /** It takes no more reads. */
  isLost: boolean
}

/**
 * `pool` has one connection, in the driver's pipeline mode. A statement whose last execution took longer than `shortMs`
 * is not taken, because others would wait behind it.
 */
export function sharedReads(pool: pg.Pool, shortMs: number): SharedReads {
  const lastMs = new Map<string, number>()
  let hold: Hold | undefined

  const openHold = (): Hold => ({
    client: pool.connect(),
    underWay: 0,
    executing: 0,
    executingSince: performance.now(),
    isLost: false,
  })

  function record(name: string, ms: number): void {
    if (lastMs.size === MAX_NAMES) lastMs.clear()
    lastMs.set(name, ms)
  }

  function release(held: Hold): void {
    if (--held.underWay > 0) return
    hold = undefined
    held.client.then(
      (client) => client.release(held.isLost),
      () => undefined, // the connect failed; its reads run elsewhere
    )
  }

  async function execute<Row extends pg.QueryResultRow>(
    held: Hold,
    client: pg.PoolClient,
    statement: Statement,
  ): Promise<pg.QueryResult<Row>> {
    if (held.executing++ === 0) held.executingSince = performance.now()
    else gatherWrites(client) // the first one does not wait for others
    try {
      return await client.query<Row>(statement)
    } finally {
      const now = performance.now()
      record(statement.name, now - held.executingSince)
      held.executingSince = now
      held.executing--
    }
  }

  return {
    record,
    takes(name) {
      const ms = lastMs.get(name)
      if (ms === undefined || ms > shortMs || pool.expiredCount > 0) return false
      if (hold === undefined) return true
      if (hold.isLost) return false
      if (hold.executing > 0 && performance.now() - hold.executingSince > STALLED_MS) return false
      return hold.underWay < MOST_UNDER_WAY
    },

    async query<Row extends pg.QueryResultRow>(statement: Statement) {
      hold ??= openHold()
      const held = hold
      held.underWay++
      try {
        const client = await held.client.catch(() => undefined)
        if (client) return await execute<Row>(held, client, statement)
        held.isLost = true
        return 'lost'
      } catch (err) {
        const { error, connectionIsLost } = failureOf(err)
        const isLost = connectionIsLost || unprepared.has(codeOf(err))
        held.isLost ||= isLost
        if (isLost && !(error instanceof Fault && error.code === 'TIMEOUT')) return 'lost'
        throw error
      } finally {
        release(held)
      }
    },

    renew() {
      if (hold) hold.isLost = true
      else if (pool.idleCount > 0)
        pool.connect().then(
          (client) => client.release(true),
          () => undefined, // there is none
        )
    },
  }
}

/** What is sent in one turn of the event loop leaves in one system call. The driver does the same within a statement. */
function gatherWrites(client: pg.PoolClient): void {
  const { stream } = (client as unknown as { readonly connection: { readonly stream: Duplex } }).connection
  if (stream.writableCorked > 0) return
  stream.cork()
  setImmediate(() => stream.uncork())
}

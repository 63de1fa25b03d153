import type { Duplex } from 'node:stream'
import { Fault } from '@overlay/rpc'
import type pg from 'pg'
import { failureOf } from './database-failure.js'

/** A connection on which each read is sent without waiting for the answers to those before it. */
export interface SharedReads {
  /** Whether a read of this prepared statement may be sent now. False while its connection is as old as it may become. */
  takes(name: string | undefined): boolean
  /** 'lost': the connection was, because of another read perhaps. This one may run elsewhere. */
  query<Row extends pg.QueryResultRow>(
    statement: pg.QueryConfig & { readonly name: string },
  ): Promise<pg.QueryResult<Row> | 'lost'>
  /** How long the statement took on a connection of its own. */
  took(name: string, ms: number): void
}

/** The server executes them one after the other; more under way are worth a connection more. */
const MOST_UNDER_WAY = 16
const MAX_NAMES = 1000

/** The connection of one pool, while reads are under way on it. */
interface Hold {
  readonly client: Promise<pg.PoolClient>
  readonly since: number
  underWay: number
  answeredAt: number
  isLost: boolean
}

export interface SharedReadsOptions {
  /** Of the connection: a shared one is never idle under load. */
  readonly lifetimeSeconds: number
  /** A statement whose last execution took longer has a connection of its own: others would wait behind it. */
  readonly shortMs: number
}

/** `pool` has one connection, in the driver's pipeline mode. */
export function sharedReads(pool: pg.Pool, { lifetimeSeconds, shortMs }: SharedReadsOptions): SharedReads {
  const lastMs = new Map<string, number>()
  let hold: Hold | undefined

  const began = (): Hold => {
    const since = performance.now()
    return { client: pool.connect(), since, underWay: 0, answeredAt: since, isLost: false }
  }
  const isOld = ({ since }: Hold): boolean => performance.now() - since > lifetimeSeconds * 1000

  function took(name: string, ms: number): void {
    if (lastMs.size === MAX_NAMES) lastMs.clear()
    lastMs.set(name, ms)
  }

  function leave(held: Hold): void {
    if (held.isLost && hold === held) hold = undefined
    if (--held.underWay > 0) return
    if (hold === held) hold = undefined
    held.client.then(
      (client) => client.release(held.isLost),
      () => undefined, // there is none, as each of its reads has been told
    )
  }

  return {
    took,
    takes: (name) =>
      name !== undefined &&
      (lastMs.get(name) ?? Number.POSITIVE_INFINITY) <= shortMs &&
      (hold === undefined || (hold.underWay < MOST_UNDER_WAY && !isOld(hold))),

    async query<Row extends pg.QueryResultRow>(statement: pg.QueryConfig & { readonly name: string }) {
      hold ??= began()
      const held = hold
      held.underWay++
      let isSent = false
      try {
        const client = await held.client
        isSent = true
        const sentAt = performance.now()
        if (held.underWay > 1) gatherWrites(client) // the first one does not wait for others
        const result = await client.query<Row>(statement)
        const now = performance.now()
        took(statement.name, now - Math.max(sentAt, held.answeredAt))
        held.answeredAt = now
        return result
      } catch (err) {
        const { error, connectionIsLost } = failureOf(err)
        held.isLost ||= connectionIsLost
        const isLate = error instanceof Fault && error.code === 'TIMEOUT'
        if (connectionIsLost && isSent && !isLate) return 'lost'
        throw error
      } finally {
        leave(held)
      }
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

import { setTimeout as pause } from 'node:timers/promises'
import { type TestPostgres, testPostgres, withClient } from '@overlay/launcher/testing'
import type { Losses } from './losses.js'
import { startProxy, type TcpProxy } from './tcp-proxy.js'

/** A Postgres with a streaming standby. Clients reach the primary at one address. */
export interface Database extends AsyncDisposable {
  readonly proxy: TcpProxy
  primary(): TestPostgres
  /** Resolves when the primary has a standby that receives all changes. Throws if it gets none. */
  whole(): Promise<void>
  /** Kills the primary after work during which commits wait for the standby, and promotes the standby. */
  failOver(work: () => Promise<unknown>): Promise<void>
  /** Kills the primary after work whose changes the standby does not receive, and promotes the standby. */
  failOverWithLoss(work: () => Promise<unknown>, losses: Losses): Promise<void>
}

const PASSWORD = 'postgres'
const WAIT_MS = 120_000
const POLL_MS = 50

/** @param diskMiB gives each server a disk of this size; only root can do that */
export async function startDatabase(diskMiB: number | undefined): Promise<Database> {
  const options = { password: PASSWORD, ...(diskMiB !== undefined && { diskMiB }) }
  let primary = await testPostgres(options)
  const proxy = await startProxy({ host: '127.0.0.1', port: portOf(primary) })
  let standby = addStandby()
  standby.catch(() => undefined) // `whole` throws it

  /** The standby receives changes through a proxy. */
  async function addStandby(): Promise<{ server: TestPostgres; replication: TcpProxy }> {
    const replication = await startProxy({ host: '127.0.0.1', port: portOf(primary) })
    const standbyOf = { url: primary.url, port: replication.port }
    const server = await testPostgres({ ...options, standbyOf }).catch(async (err: unknown) => {
      await replication[Symbol.asyncDispose]()
      throw err
    })
    return { server, replication }
  }

  async function replacePrimary(onEnd: () => void): Promise<void> {
    const former = primary
    const { server, replication } = await standby
    const ended = former.stop('SIGKILL')
    proxy.cut()
    await ended
    onEnd()
    await server.promote()
    primary = server
    proxy.forwardTo(portOf(server))
    proxy.restore()
    standby = (async () => {
      await replication[Symbol.asyncDispose]()
      await former[Symbol.asyncDispose]()
      return addStandby()
    })()
    standby.catch(() => undefined)
  }

  return {
    proxy,
    primary: () => primary,
    async whole() {
      await standby
      await untilReceived(primary)
    },
    async failOver(work) {
      await standby
      await setSynchronous(primary)
      await untilReceived(primary, 'sync')
      await work()
      await replacePrimary(() => undefined)
    },
    async failOverWithLoss(work, losses) {
      const { replication } = await standby
      losses.begin()
      try {
        await untilReceived(primary)
        replication.cut()
        await work()
        await replacePrimary(losses.end)
      } catch (err) {
        losses.cancel() // unless it has ended
        replication.restore()
        throw err
      }
    },
    async [Symbol.asyncDispose]() {
      await proxy[Symbol.asyncDispose]()
      const one = await standby.catch(() => undefined)
      await one?.server[Symbol.asyncDispose]()
      await one?.replication[Symbol.asyncDispose]()
      await primary[Symbol.asyncDispose]()
    },
  }
}

const portOf = ({ url }: TestPostgres): number => Number(new URL(url).port)

/** Commits wait for the standby. */
const setSynchronous = ({ url }: TestPostgres): Promise<void> =>
  withClient(url, async (client) => {
    await client.query("alter system set synchronous_standby_names = '*'")
    await client.query('select pg_reload_conf()')
  })

/** Waits until the standby has stored all changes that are on the disk at this moment, in this role if there is one. */
async function untilReceived({ url }: TestPostgres, role?: 'sync'): Promise<void> {
  const deadline = performance.now() + WAIT_MS
  let lsn: string | undefined
  for (;;) {
    try {
      lsn ??= await flushedIn(url)
      if (await hasReceived(url, lsn, role)) return
      if (performance.now() > deadline) throw new Error('the standby does not receive all changes')
    } catch (err) {
      if (performance.now() > deadline) throw err // the server may recover from a fault
    }
    await pause(POLL_MS)
  }
}

const flushedIn = (url: string): Promise<string | undefined> =>
  withClient(url, async (client) => {
    const { rows } = await client.query<{ lsn: string }>('select pg_current_wal_flush_lsn() as lsn')
    return rows[0]?.lsn
  })

const hasReceived = (url: string, lsn: string | undefined, role: 'sync' | undefined): Promise<boolean> =>
  withClient(url, async (client) => {
    const { rowCount } = await client.query(
      `select from pg_stat_replication
        where state = 'streaming' and flush_lsn >= $1 and ($2::text is null or sync_state = $2)`,
      [lsn, role],
    )
    return rowCount === 1
  })

import { randomBytes } from 'node:crypto'
import { chmod } from 'node:fs/promises'
import { join } from 'node:path'
import { withClient } from '@overlay/platform/postgres/migrate'
import { type Account, give, ownerOf, sharedCache } from './account.js'
import { startBroker } from './broker.js'
import { dataDirectory, type Home } from './home.js'
import { keepRunning } from './keep-running.js'
import type { LogLimits } from './log-file.js'
import { findNatsServer, startNatsServer } from './nats-server.js'
import { freePort } from './ports.js'
import { startPostgres } from './postgres.js'
import { findPostgres } from './postgres-binaries.js'

/** A server that the launcher runs because it was given none. */
export interface OwnServer {
  readonly url: string
  readonly about: string
  stop(): Promise<void>
}

/** With a database for the product alone; the URL is its owner's. */
export async function ownPostgres(
  home: Home,
  logs: LogLimits,
  say: (line: string) => void,
): Promise<OwnServer> {
  const account = await ownerOf(home.path('postgres'), home.accounts.database)
  const directory = await dataDirectory(home, 'postgres', account)
  await admitToSocket(home, account)
  const binaries = await findPostgres(account, sharedCache(home.directory))
  const start = () =>
    startPostgres({
      account,
      binaries: binaries.directory,
      directory,
      listen: home.run.postgres,
      password: home.secrets.postgresPassword,
      logs,
    })
  const first = await start()
  const { stop } = keepRunning(first, start, say)
  await withClient(first.url, async (client) => {
    const { rowCount } = await client.query('select from pg_database where datname = $1', [database])
    if (rowCount === 0) await client.query(`create database ${database}`)
  })
  const url = new URL(first.url)
  url.pathname = database
  const about = `Postgres ${binaries.version}, socket in ${home.run.postgres}, data in ${directory}`
  return { url: url.href, about, stop }
}
const database = 'overlay'

/** Postgres makes its socket there, the processes may connect, and nobody else may do either. */
async function admitToSocket({ run, accounts: { processes } }: Home, { uid, gid }: Account): Promise<void> {
  if (uid === undefined) return
  await give(run.postgres, { uid, gid: processes.gid ?? gid ?? 0 })
  await chmod(run.postgres, 0o710)
}

export async function ownBus(home: Home, say: (line: string) => void): Promise<OwnServer> {
  const port = await freePort()
  const password = randomBytes(24).toString('base64url')
  const account = home.accounts.processes
  const path = await findNatsServer(account)
  if (path) {
    const configFile = join(home.run.path, 'nats.conf')
    const start = () => startNatsServer({ path, port, password, configFile, account })
    const first = await start()
    return {
      url: first.url,
      about: `bus at port ${port}: ${path}`,
      stop: keepRunning(first, start, say).stop,
    }
  }
  const { url, stop } = await startBroker({ port, password })
  return { url, about: `bus at port ${port}: built in`, stop }
}

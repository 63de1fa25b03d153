import { randomBytes } from 'node:crypto'
import { withClient } from '@overlay/platform/migrate'
import { accountFor, sharedCache } from './account.js'
import { startBroker } from './broker.js'
import { databaseDirectory, type Home } from './home.js'
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
  const account = await accountFor(home.path('postgres'))
  const directory = await databaseDirectory(home, account)
  const binaries = await findPostgres(account, sharedCache(home.directory))
  const port = await freePort()
  const start = () =>
    startPostgres({
      account,
      binaries: binaries.directory,
      directory,
      port,
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
  return { url: url.href, about: `Postgres ${binaries.version} at port ${port}, data in ${directory}`, stop }
}
const database = 'overlay'

export async function ownBus(home: Home, say: (line: string) => void): Promise<OwnServer> {
  const port = await freePort()
  const password = randomBytes(24).toString('base64url')
  const path = await findNatsServer()
  if (path) {
    const start = () => startNatsServer({ path, port, password, configFile: home.path('nats.conf') })
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

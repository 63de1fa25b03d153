import { randomBytes } from 'node:crypto'
import { chmod } from 'node:fs/promises'
import { withClient } from '@overlay/store/postgres/migrate'
import { dataDirectory, type Home } from '../home/home.js'
import type { ProcessCertificates } from '../home/process-certificates.js'
import { type Account, chownTo, ownerOf, sharedCache } from '../system/account.js'
import type { LogLimits } from '../system/log-file.js'
import { freePort } from '../system/ports.js'
import { supervise } from '../system/supervise.js'
import { startBroker } from './broker.js'
import { explainOwnDatabase, untilDatabase } from './external-servers.js'
import { socketUrl, startPostgres } from './postgres.js'
import { findPostgres } from './postgres-binaries.js'

const database = 'overlay'

/** A server that the launcher runs because the settings name none. */
export interface LaunchedServer {
  readonly url: string
  readonly description: string
  stop(): Promise<void>
}

/** Starts Postgres with a database for the product. The URL is that of the database's owner. */
export async function launchPostgres(
  home: Home,
  logs: LogLimits,
  print: (line: string) => void,
): Promise<LaunchedServer> {
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
  const { stop } = supervise(first, start, print)
  await untilDatabase(print, () => explainOwnDatabase(() => createDatabase(first.url)))
  const description = `Postgres ${binaries.version}, socket in ${home.run.postgres}, data in ${directory}`
  return { url: bundledUrl(home.run.postgres, home.secrets.postgresPassword), description, stop }
}

const createDatabase = (url: string): Promise<void> =>
  withClient(url, async (client) => {
    const { rowCount } = await client.query('select from pg_database where datname = $1', [database])
    if (rowCount === 0) await client.query(`create database ${database}`)
  })

/** Runs work with the URL of the database's owner, in a Postgres that runs for this time. */
export async function withPostgres<T>(
  home: Home,
  logs: LogLimits,
  print: (line: string) => void,
  work: (ownerUrl: string) => Promise<T>,
): Promise<T> {
  const server = await launchPostgres(home, logs, print)
  try {
    return await work(server.url)
  } finally {
    await server.stop()
  }
}

/** Of the owner of the product's database in the Postgres that the launcher runs. */
export const bundledUrl = (socketDirectory: string, password: string): string =>
  socketUrl({ directory: socketDirectory, password, database })

/** Lets Postgres create its socket in the run directory, and only the processes connect to it. */
async function admitToSocket({ run, accounts: { processes } }: Home, { uid, gid }: Account): Promise<void> {
  if (uid === undefined) return
  await chownTo(run.postgres, { uid, gid: processes.gid ?? gid ?? 0 })
  await chmod(run.postgres, 0o710)
}

const BUS = 'nats'
const busHosts = [BUS, 'localhost', '127.0.0.1'] as const

/** Starts the built-in broker. */
export async function launchBus(certificates: ProcessCertificates): Promise<LaunchedServer> {
  const port = await freePort()
  const password = randomBytes(24).toString('base64url')
  let reload = (): void => undefined
  const tls = await certificates.issue({ name: BUS, hosts: busHosts, onRenewed: () => reload() })
  const broker = await startBroker({ port, password, tls })
  reload = broker.reload
  return { url: broker.url, description: `bus at port ${port}`, stop: broker.stop }
}

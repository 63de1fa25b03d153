import { execFile } from 'node:child_process'
import { chmod, mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { promisify } from 'node:util'
import { POSTGRES_ORPHANS_MS, POSTGRES_STOP_MS } from '../limits.js'
import {
  type Account,
  chownAll,
  chownTo,
  isReachable,
  namedAccount,
  refuseOtherFiles,
} from '../system/account.js'
import { type LogLimits, openLogFile } from '../system/log-file.js'
import { commandLineOf } from '../system/process-identity.js'
import { type RunningProcess, startProgram } from '../system/start-program.js'

export interface PostgresOptions {
  readonly binaries: string
  readonly account: Account
  readonly directory: string // of data and log; created if missing
  readonly listen: number | string // a port of the loopback interface, or the directory of its socket
  readonly password?: string // absent: no authentication and no waiting for the disk; for tests
  readonly logs?: LogLimits
  readonly stopMs?: number // for tests
}

const testLogs: LogLimits = { maxBytes: 16 * 1024 * 1024, files: 2 }

export interface Postgres extends RunningProcess {
  readonly url: string
}

const user = 'postgres'

const databaseFiles = /^(data(\.unfinished)?|password|postgres\.log(\.\d+)?|lost\+found)$/

/** Starts a server that ends when this process ends for any reason. */
export async function startPostgres(options: PostgresOptions): Promise<Postgres> {
  const { account, binaries, directory, listen, password } = options
  await mkdir(directory, { recursive: true, mode: 0o700 })
  await refuseOtherFiles(directory, databaseFiles)
  await chownTo(directory, account)
  if (!(await isReachable(directory, account))) {
    throw new Error(`the database's user cannot reach ${directory}`)
  }
  const data = join(directory, 'data')
  await initialize(options, data)
  await removeStalePid(data)
  // Postgres would not start if another program had the process id in this file
  if (typeof listen === 'string') await rm(join(listen, '.s.PGSQL.5432.lock'), { force: true })

  const major = Number(await readFile(join(data, 'PG_VERSION'), 'utf8'))
  const server = await retryWhileInUse(() =>
    startProgram({
      path: join(binaries, 'postgres'),
      args: flags(options, data, major),
      account,
      readyText: 'system is ready to accept', // connections; those of a standby are read-only
      log: openLogFile(join(directory, 'postgres.log'), options.logs ?? testLogs),
      stopMs: options.stopMs ?? POSTGRES_STOP_MS,
      lateSignal: 'SIGQUIT', // it ends its children, too, after at most 5 s; after SIGKILL they would use the data on
    }),
  )
  const url =
    typeof listen === 'number'
      ? `postgres://${credentials(password)}@127.0.0.1:${listen}/postgres`
      : socketUrl({ directory: listen, password, database: 'postgres' })
  return { ...server, url }
}

const credentials = (password: string | undefined): string =>
  password === undefined ? user : `${user}:${password}`

interface SocketPlace {
  readonly directory: string
  readonly password: string | undefined
  readonly database: string
}

export const socketUrl = ({ directory, password, database }: SocketPlace): string =>
  `postgres://${credentials(password)}@localhost/${database}?host=${encodeURIComponent(directory)}`

function flags({ listen, password }: PostgresOptions, data: string, major: number): string[] {
  const isPort = typeof listen === 'number'
  const settings = {
    listen_addresses: isPort ? '127.0.0.1' : '',
    unix_socket_directories: isPort ? '' : listen,
    max_connections: 600, // 33 for each of at most 16 processes with all components, and tools
    max_pred_locks_per_transaction: 10, // no transaction is serializable
    max_logical_replication_workers: 0,
    ...(major >= 18 && { io_method: 'sync' }), // the data is mostly in memory: workers would only be woken
    max_wal_size: '2GB',
    ...(password === undefined && { fsync: 'off', synchronous_commit: 'off', full_page_writes: 'off' }),
  }
  const set = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`])
  return ['-D', data, '-p', String(isPort ? listen : 5432), ...set]
}

/**
 * Creates the cluster under another name first, so that `data` is always complete. initdb requires an account with a
 * name: it runs as one that can enter by its group, and the files change their owner afterwards.
 */
async function initialize(
  { account, binaries, directory, password }: PostgresOptions,
  data: string,
): Promise<void> {
  if (await readFile(join(data, 'PG_VERSION')).catch(() => undefined)) return
  const unfinished = `${data}.unfinished`
  const passwordFile = join(directory, 'password')
  const initAccount = await namedAccount(account)
  await rm(unfinished, { recursive: true, force: true })
  await mkdir(unfinished, { mode: 0o700 })
  await chownTo(unfinished, initAccount)
  await rm(passwordFile, { force: true })
  await writeFile(passwordFile, `${password ?? ''}\n`, { mode: 0o600 })
  await chownTo(passwordFile, initAccount)
  if (initAccount.uid !== undefined) await chmod(directory, 0o710)
  const auth = password === undefined ? ['trust', '--no-sync'] : ['scram-sha-256', '--pwfile', passwordFile]
  const args = ['-D', unfinished, '-U', user, '-E', 'UTF8', '--no-locale', '--no-instructions', '-A', ...auth]
  const env = { PATH: process.env.PATH, LC_ALL: 'C' }
  await promisify(execFile)(join(binaries, 'initdb'), args, { ...initAccount, env, cwd: '/' })
  await rm(passwordFile)
  await chownAll(unfinished, account)
  await chmod(directory, 0o700)
  await rename(unfinished, data)
}

/** The children of a killed server use the data until they notice its end. */
async function retryWhileInUse(start: () => Promise<RunningProcess>): Promise<RunningProcess> {
  const deadline = Date.now() + POSTGRES_ORPHANS_MS
  for (;;) {
    try {
      return await start()
    } catch (err) {
      if (!(err as Error).message.includes('still in use') || Date.now() > deadline) throw err
      await pause(100)
    }
  }
}

/**
 * Waits for a server that a killed launcher has left and that is still stopping, and removes its pid file. Postgres does
 * not start if another program has the process id in it.
 */
async function removeStalePid(data: string): Promise<void> {
  const file = join(data, 'postmaster.pid')
  const deadline = Date.now() + POSTGRES_STOP_MS
  for (;;) {
    const pid = Number((await readFile(file, 'utf8').catch(() => '')).split('\n')[0])
    if (!pid) return
    if (!(await commandLineOf(pid)).includes(data)) return rm(file, { force: true })
    if (Date.now() > deadline) throw new Error(`another Postgres, process ${pid}, uses ${data}`)
    await pause(20)
  }
}

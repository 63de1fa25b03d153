import { execFile } from 'node:child_process'
import { chmod, mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { promisify } from 'node:util'
import { type Account, give, giveAll, isReachable, namedIn } from './account.js'
import { commandOf } from './command-of.js'
import { type Running, startWithParent } from './die-with-parent.js'
import { type LogLimits, openLogFile } from './log-file.js'

export interface PostgresOptions {
  readonly binaries: string
  readonly account: Account
  readonly directory: string // holds data and log; made if missing
  readonly listen: number | string // a port of the loopback interface, or the directory of its socket
  readonly password?: string // absent: lets in everybody on this machine and does not wait for the disk; for tests
  readonly logs?: LogLimits
}

const testLogs: LogLimits = { maxBytes: 16 * 1024 * 1024, files: 2 }

export interface Postgres extends Running {
  readonly url: string
}

const user = 'postgres'

/** Starts a server that ends with this process, however that ends. */
export async function startPostgres(options: PostgresOptions): Promise<Postgres> {
  const { account, binaries, directory, listen, password } = options
  await mkdir(directory, { recursive: true, mode: 0o700 })
  await give(directory, account)
  if (!(await isReachable(directory, account))) {
    throw new Error(`the database's user cannot reach ${directory}`)
  }
  const data = join(directory, 'data')
  await initialize(options, data)
  await clearLeftover(data)
  // its process id may be another program's by now, and then it would refuse to start
  if (typeof listen === 'string') await rm(join(listen, '.s.PGSQL.5432.lock'), { force: true })

  const server = await untilAlone(() =>
    startWithParent({
      path: join(binaries, 'postgres'),
      args: flags(options, data),
      account,
      readyWords: 'ready to accept connections',
      log: openLogFile(join(directory, 'postgres.log'), options.logs ?? testLogs),
    }),
  )
  const credentials = password === undefined ? user : `${user}:${password}`
  const isPort = typeof listen === 'number'
  const place = isPort
    ? `127.0.0.1:${listen}/postgres`
    : `localhost/postgres?host=${encodeURIComponent(listen)}`
  return { ...server, url: `postgres://${credentials}@${place}` }
}

function flags({ listen, password }: PostgresOptions, data: string): string[] {
  const isPort = typeof listen === 'number'
  const settings = {
    listen_addresses: isPort ? '127.0.0.1' : '',
    unix_socket_directories: isPort ? '' : listen,
    max_connections: 300,
    max_wal_size: '2GB',
    ...(password === undefined && { fsync: 'off', synchronous_commit: 'off', full_page_writes: 'off' }),
  }
  const set = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`])
  return ['-D', data, '-p', String(isPort ? listen : 5432), ...set]
}

/**
 * Makes the cluster under another name first, so that what is called `data` is always whole. Where it belongs to an
 * account without a name, it is made by one that has a name: only its group lets that one in.
 */
async function initialize(
  { account, binaries, directory, password }: PostgresOptions,
  data: string,
): Promise<void> {
  if (await readFile(join(data, 'PG_VERSION')).catch(() => undefined)) return
  const unfinished = `${data}.unfinished`
  const passwordFile = join(directory, 'password')
  const maker = await namedIn(account)
  await rm(unfinished, { recursive: true, force: true })
  await mkdir(unfinished, { mode: 0o700 })
  await give(unfinished, maker)
  await rm(passwordFile, { force: true })
  await writeFile(passwordFile, `${password ?? ''}\n`, { mode: 0o600 })
  await give(passwordFile, maker)
  if (maker.uid !== undefined) await chmod(directory, 0o710)
  const auth = password === undefined ? ['trust', '--no-sync'] : ['scram-sha-256', '--pwfile', passwordFile]
  const args = ['-D', unfinished, '-U', user, '-E', 'UTF8', '--no-locale', '--no-instructions', '-A', ...auth]
  const env = { PATH: process.env.PATH, LC_ALL: 'C' }
  await promisify(execFile)(join(binaries, 'initdb'), args, { ...maker, env, cwd: '/' })
  await rm(passwordFile)
  await giveAll(unfinished, account)
  await chmod(directory, 0o700)
  await rename(unfinished, data)
}

const orphansMs = 3000

/** The children of a server that was killed end in a moment, but not before they notice. */
async function untilAlone(start: () => Promise<Running>): Promise<Running> {
  const deadline = Date.now() + orphansMs
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
 * A launcher that was killed may have left a server that is still stopping: waits for it.
 * A process id that meanwhile belongs to another program would keep Postgres from starting.
 */
async function clearLeftover(data: string): Promise<void> {
  const file = join(data, 'postmaster.pid')
  const deadline = Date.now() + 15_000
  for (;;) {
    const pid = Number((await readFile(file, 'utf8').catch(() => '')).split('\n')[0])
    if (!pid) return
    if (!(await commandOf(pid)).includes(data)) return rm(file, { force: true })
    if (Date.now() > deadline) throw new Error(`another Postgres, process ${pid}, uses ${data}`)
    await pause(20)
  }
}

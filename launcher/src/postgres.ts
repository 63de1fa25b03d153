import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createWriteStream } from 'node:fs'
import { chmod, chown, mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { promisify } from 'node:util'
import { type Account, isReachable } from './account.js'

export interface PostgresOptions {
  readonly binaries: string
  readonly account: Account
  readonly directory: string // holds data and log; made if missing
  readonly port: number
  readonly password?: string // absent: everybody on this machine is let in, and no write is waited for; for tests
}

export interface Postgres extends AsyncDisposable {
  readonly url: string
  readonly pid: number
  /** Settles when the server has ended, whoever ended it. */
  readonly ended: Promise<void>
  stop(): Promise<void>
}

const user = 'postgres'

/** Starts a server on the loopback interface that ends with this process, however that ends. */
export async function startPostgres(options: PostgresOptions): Promise<Postgres> {
  const { account, directory, password, port } = options
  await mkdir(directory, { recursive: true, mode: 0o700 })
  if (account.uid !== undefined && account.gid !== undefined) await chown(directory, account.uid, account.gid)
  if (!(await isReachable(directory, account))) {
    throw new Error(`the user of the database cannot reach ${directory}`)
  }
  const data = join(directory, 'data')
  await initialize(options, data)
  await clearLeftover(data)

  // The first shell waits for the end of our pipe and stops the server then; the second becomes the server.
  const watched = '(read -r _ <&3 || kill -INT $$) >/dev/null 2>&1 & exec "$@" 3<&-'
  const server = spawn(
    '/bin/sh',
    ['-c', watched, 'sh', join(options.binaries, 'postgres'), ...flags(options, data)],
    {
      ...account,
      ...quiet,
      detached: true, // Ctrl-C is for the launcher, which stops the server last
      stdio: ['ignore', 'ignore', 'pipe', 'pipe'],
    },
  )
  const ended = once(server, 'exit').then(() => {
    const life = server.stdio[3]
    if (life && 'end' in life) life.end('\n') // nothing to stop any more: the process id may soon be another's
  })
  await untilReady(server, join(directory, 'postgres.log'))
  const stop = async (): Promise<void> => {
    server.kill('SIGINT')
    const late = setTimeout(() => server.kill('SIGQUIT'), 10_000)
    await ended
    clearTimeout(late)
  }
  const credentials = password === undefined ? user : `${user}:${password}`
  return {
    url: `postgres://${credentials}@127.0.0.1:${port}/postgres`,
    pid: server.pid ?? 0,
    ended,
    stop,
    [Symbol.asyncDispose]: stop,
  }
}

// No locale of the host, no working directory that the account may not enter.
const quiet = { env: { PATH: process.env.PATH, LC_ALL: 'C' }, cwd: '/' }

function flags({ port, password }: PostgresOptions, data: string): string[] {
  const settings = {
    listen_addresses: '127.0.0.1',
    unix_socket_directories: '', // their paths have a length limit
    shared_buffers: '128MB',
    max_connections: 300,
    max_wal_size: '2GB',
    ...(password === undefined && { fsync: 'off', synchronous_commit: 'off', full_page_writes: 'off' }),
  }
  const set = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`])
  return ['-D', data, '-p', String(port), ...set]
}

/** Makes the cluster under another name first, so that what is called `data` is always whole. */
async function initialize(options: PostgresOptions, data: string): Promise<void> {
  const { account, binaries, directory, password } = options
  const done = await readFile(join(data, 'PG_VERSION')).catch(() => undefined)
  if (done) return
  const unfinished = `${data}.unfinished`
  const passwordFile = join(directory, 'password')
  await rm(unfinished, { recursive: true, force: true })
  await writeFile(passwordFile, `${password ?? ''}\n`, { mode: 0o600 })
  if (account.uid !== undefined && account.gid !== undefined) {
    await chown(passwordFile, account.uid, account.gid)
  }
  const auth =
    password === undefined
      ? ['--auth=trust', '--no-sync']
      : ['--auth=scram-sha-256', `--pwfile=${passwordFile}`]
  const common = ['-D', unfinished, '-U', user, '-E', 'UTF8', '--no-locale', '--no-instructions']
  await promisify(execFile)(join(binaries, 'initdb'), [...common, ...auth], {
    ...account,
    ...quiet,
  })
  await rm(passwordFile)
  await chmod(unfinished, 0o700)
  await rename(unfinished, data)
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
    if (!(await isServerOf(pid, data))) return rm(file, { force: true })
    if (Date.now() > deadline) throw new Error(`another Postgres, process ${pid}, uses ${data}`)
    await pause(20)
  }
}

async function isServerOf(pid: number, data: string): Promise<boolean> {
  const command = await readFile(`/proc/${pid}/cmdline`, 'utf8')
    .catch(() =>
      promisify(execFile)('ps', ['-o', 'command=', '-p', String(pid)]).then(({ stdout }) => stdout),
    )
    .catch(() => '')
  return command.includes(data)
}

/** Its own words say when it is ready; all of them go to the log. */
async function untilReady(server: ChildProcess, logFile: string): Promise<void> {
  const log = createWriteStream(logFile, { flags: 'a', mode: 0o600 })
  let said = ''
  await new Promise<void>((resolve, reject) => {
    const listen = (chunk: Buffer): void => {
      said = (said + chunk).slice(-4000)
      if (!said.includes('ready to accept connections')) return
      server.stderr?.off('data', listen)
      resolve()
    }
    server.stderr?.on('data', listen)
    server.stderr?.pipe(log)
    server.once('error', reject)
    server.once('exit', () => reject(new Error(`Postgres did not start: ${said.trim()}`)))
  })
}

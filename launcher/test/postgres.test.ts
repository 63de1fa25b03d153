import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, mkdir, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { withClient } from '@overlay/store/postgres/migrate'
import { expect, onTestFinished, test } from 'vitest'
import { type PostgresOptions, startPostgres } from '../src/servers/postgres.js'
import { findPostgres } from '../src/servers/postgres-binaries.js'
import { accountsOf, chownTo, DEFAULT_UID, sharedCache } from '../src/system/account.js'
import { freePort } from '../src/system/ports.js'
import { commandLineOf } from '../src/system/process-identity.js'

test('keeps its rows across starts, and requires its password', async () => {
  const options = { ...(await newOptions()), password: 'sesame' }
  const first = await startPostgres(options)
  await withClient(first.url, (client) => client.query('create table kept (n int)'))
  await first.stop()

  const second = await startPostgres(options)
  onTestFinished(second.stop)
  await withClient(second.url, (client) => client.query('select n from kept'))
  const wrongUrl = second.url.replace('sesame', 'wrong')
  await expect(withClient(wrongUrl, (client) => client.query('select 1'))).rejects.toThrow('password')
})

test('a directory with files of other programs is refused and keeps its owner', async () => {
  const options = await newOptions()
  await mkdir(options.directory, { recursive: true })
  await writeFile(join(options.directory, 'other'), '')
  const { uid, mode } = await stat(options.directory)
  await expect(startPostgres(options)).rejects.toThrow('has files of other programs (other)')
  expect(await stat(options.directory)).toMatchObject({ uid, mode })
})

test('starts after it was killed, even if another program has its process id now', async () => {
  const options = await newOptions()
  const first = await startPostgres(options)
  process.kill(first.pid, 'SIGKILL')
  await first.ended
  const file = join(options.directory, 'data/postmaster.pid')
  const [, ...rest] = (await readFile(file, 'utf8')).split('\n')
  const other = spawn('sleep', ['60'], { ...options.account, stdio: 'ignore' })
  onTestFinished(() => void other.kill())
  await writeFile(file, [other.pid, ...rest].join('\n'))

  const second = await startPostgres(options)
  onTestFinished(second.stop)
  await withClient(second.url, (client) => client.query('select 1'))
})

test('starts when the children of a killed server have ended', async () => {
  const options = await newOptions()
  const first = await startPostgres(options)
  let busy: Promise<unknown> = Promise.resolve()
  const pid = await new Promise<number>((begin) => {
    busy = withClient(first.url, async (client) => {
      const { rows } = await client.query('select pg_backend_pid() as pid')
      begin(rows[0].pid)
      await client.query('select count(*) from generate_series(1, 1e9::bigint) n where n % 7 = 0')
    }).catch(() => undefined) // killed below
  })
  process.kill(first.pid, 'SIGKILL')
  await first.ended
  const starting = startPostgres(options)
  const log = () => readFile(join(options.directory, 'postgres.log'), 'utf8')
  await expect.poll(log).toContain('still in use')
  process.kill(pid, 'SIGKILL')
  const second = await starting
  onTestFinished(second.stop)
  await busy
})

test('ends when the launcher is killed, and can be started again immediately', async () => {
  const options = await newOptions()
  const script = `
    import { startPostgres } from ${JSON.stringify(join(import.meta.dirname, '../src/servers/postgres.ts'))}
    const postgres = await startPostgres(${JSON.stringify(options)})
    console.log(postgres.pid)
    setInterval(() => undefined, 1000)`
  const launcher = spawn(
    process.execPath,
    ['--conditions=source', '--import=tsx', '--input-type=module', '-e', script],
    {
      stdio: ['ignore', 'pipe', 'inherit'],
    },
  )
  const [pid] = await once(launcher.stdout, 'data')
  launcher.kill('SIGKILL')

  const next = await startPostgres(options)
  onTestFinished(next.stop)
  expect(await commandLineOf(Number(pid))).toBe('')
})

test('a stop that takes too long ends all of its processes, and the next start works', async () => {
  const options = { ...(await newOptions()), stopMs: 1 }
  const first = await startPostgres(options)
  const checkpointer = await withClient(first.url, async (client) => {
    const { rows } = await client.query(
      "select pid from pg_stat_activity where backend_type = 'checkpointer'",
    )
    return rows[0].pid
  })
  process.kill(checkpointer, 'SIGSTOP') // as if its disk was slow
  onTestFinished(() => signal(checkpointer, 'SIGKILL'))
  await first.stop()
  expect(await commandLineOf(checkpointer)).toBe('')
  const second = await startPostgres(options)
  onTestFinished(second.stop)
  await withClient(second.url, (client) => client.query('select 1'))
})

test('listens only at a socket if a directory is named, which may have blanks', async () => {
  const options = { ...(await newOptions()), password: 'sesame' }
  const sockets = await mkdtemp(join(tmpdir(), 'overlay % +'))
  onTestFinished(() => rm(sockets, { recursive: true }))
  await chownTo(sockets, options.account)
  const first = await startPostgres({ ...options, listen: sockets })
  process.kill(first.pid, 'SIGKILL')
  await first.ended
  const server = await startPostgres({ ...options, listen: sockets })
  onTestFinished(server.stop)
  const listening = await withClient(server.url, async (client) => {
    const { rows } = await client.query('show listen_addresses')
    return rows
  })
  expect(listening).toEqual([{ listen_addresses: '' }])
})

test('reports the reason of a failed start', async () => {
  const options = await newOptions()
  const first = await startPostgres(options)
  await first.stop()
  await writeFile(join(options.directory, 'data/postgresql.conf'), 'no_such_setting = 1\n')
  await expect(startPostgres(options)).rejects.toThrow('no_such_setting')
})

function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name)
  } catch {
    // it has ended
  }
}

async function newOptions(): Promise<PostgresOptions> {
  const home = await mkdtemp(join(tmpdir(), 'overlay test '))
  onTestFinished(() => rm(home, { recursive: true }))
  await chmod(home, 0o711)
  const directory = join(home, 'postgres')
  const { database: account } = accountsOf(DEFAULT_UID)
  const binaries = await findPostgres(account, sharedCache(home))
  return {
    account,
    binaries: binaries.directory,
    directory,
    listen: await freePort(),
  }
}

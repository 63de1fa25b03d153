import { execFile } from 'node:child_process'
import { chmod, mkdtemp, rm, statfs } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { promisify } from 'node:util'
import { startPostgres } from '../src/servers/postgres.js'
import { findPostgres } from '../src/servers/postgres-binaries.js'
import { accountsOf, DEFAULT_UID, sharedCache } from '../src/system/account.js'
import { freePort } from '../src/system/ports.js'

const run = promisify(execFile)

export interface TestPostgres extends AsyncDisposable {
  readonly url: string
  /** `SIGINT` closes the connections of clients properly, `SIGKILL` does not. */
  stop(signal?: 'SIGINT' | 'SIGKILL'): Promise<void>
  /** Starts it again at the same address with the same data. */
  start(): Promise<void>
  /** Leaves no space on its disk. Returns a function that gives the space back, and starts the server if it has ended. */
  fillDisk(): Promise<() => Promise<void>>
  /** Makes a standby a primary, with all changes that it has received. */
  promote(): Promise<void>
}

export interface TestPostgresOptions {
  /** With a password it waits for the disk, like the server of the product. */
  readonly password?: string
  /** Size of a disk of its own, in memory. Only root can have one. */
  readonly diskMiB?: number
  /** With it, the server is a streaming standby of another, and has its password. */
  readonly standbyOf?: Upstream
}

/** The primary of a standby. */
export interface Upstream {
  readonly url: string
  /** The port of the loopback interface by which the standby receives changes. */
  readonly port: number
}

/**
 * A server that a test may stop and start. OVERLAY_TEST_POSTGRES names the directory of its binaries.
 */
export async function testPostgres({
  password,
  diskMiB,
  standbyOf,
}: TestPostgresOptions = {}): Promise<TestPostgres> {
  const configured = process.env.OVERLAY_TEST_POSTGRES
  const home = await mkdtemp(join(tmpdir(), 'overlay-test-'))
  const directory = join(home, 'postgres')
  if (diskMiB !== undefined)
    await run('mount', ['-t', 'tmpfs', '-o', `size=${diskMiB}m,mode=711`, 'tmpfs', home])
  const { database: account } = accountsOf(DEFAULT_UID)
  await chmod(home, 0o711)
  const binaries =
    configured && !configured.startsWith('postgres')
      ? configured
      : (await findPostgres(account, sharedCache(home))).directory
  if (standbyOf) {
    const { copyForStandby } = await import('./copy-for-standby.js')
    await copyForStandby(standbyOf, join(directory, 'data'), account)
  }
  const options = { account, binaries, directory, listen: await freePort() }
  const start = () => startPostgres({ ...options, ...(password !== undefined && { password }) })
  let server = await start()
  let isEnded = false
  const watch = (): void => {
    isEnded = false
    void server.ended.then(() => {
      isEnded = true
    })
  }
  watch()
  const restart = async (): Promise<void> => {
    server = await start()
    watch()
  }
  /** False also while it recovers. */
  async function isServing(): Promise<boolean> {
    return query('select').then(
      () => true,
      () => false,
    )
  }
  async function query(text: string): Promise<void> {
    // the set-up of all tests loads this file, and finds no other packages
    const { withClient } = await import('@overlay/store/postgres/migrate')
    await withClient(server.url, (client) => client.query(text))
  }
  return {
    url: server.url,
    async stop(signal = 'SIGINT') {
      process.kill(server.pid, signal)
      await server.ended
    },
    start: restart,
    async fillDisk() {
      const ballast = join(home, 'ballast')
      const { bavail, bsize } = await statfs(home)
      if (diskMiB === undefined) throw new Error('this server has no disk of its own')
      const most = Math.floor(0.98 * bavail * bsize)
      await run('fallocate', ['-l', String(most), ballast])
      await run('sh', ['-c', 'cat /dev/zero >> "$1"', 'sh', ballast]).catch(() => undefined) // up to the last byte
      return async () => {
        await rm(ballast)
        while (!(await isServing())) {
          if (isEnded) await restart()
          else await pause(50)
        }
      }
    },
    promote: () => query('select pg_promote()'),
    async [Symbol.asyncDispose]() {
      await server.stop()
      if (diskMiB !== undefined) await run('umount', ['--lazy', home]) // a part of the server may not have ended
      await rm(home, { recursive: true, maxRetries: 10 }) // the children of a killed server end later
    },
  }
}

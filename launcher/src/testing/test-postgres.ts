import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { accountsOf, DEFAULT_UID, sharedCache } from '../home/account.js'
import { freePort } from '../processes/ports.js'
import { startPostgres } from '../servers/postgres.js'
import { findPostgres } from '../servers/postgres-binaries.js'

export interface TestPostgres extends AsyncDisposable {
  readonly url: string
  /** `SIGINT` closes the connections of clients properly, `SIGKILL` does not. */
  stop(signal?: 'SIGINT' | 'SIGKILL'): Promise<void>
  /** Starts it again at the same address with the same data. */
  start(): Promise<void>
}

/**
 * A server that a test may stop and start. With a password it waits for the disk, like the server of the product.
 * OVERLAY_TEST_POSTGRES names the directory of its binaries.
 */
export async function testPostgres(password?: string): Promise<TestPostgres> {
  const configured = process.env.OVERLAY_TEST_POSTGRES
  const home = await mkdtemp(join(tmpdir(), 'overlay-test-'))
  const directory = join(home, 'postgres')
  const { database: account } = accountsOf(DEFAULT_UID)
  await chmod(home, 0o711)
  const binaries =
    configured && !configured.startsWith('postgres')
      ? configured
      : (await findPostgres(account, sharedCache(home))).directory
  const options = { account, binaries, directory, listen: await freePort() }
  const start = () => startPostgres({ ...options, ...(password !== undefined && { password }) })
  let server = await start()
  return {
    url: server.url,
    async stop(signal = 'SIGINT') {
      process.kill(server.pid, signal)
      await server.ended
    },
    async start() {
      server = await start()
    },
    async [Symbol.asyncDispose]() {
      await server.stop()
      await rm(home, { recursive: true })
    },
  }
}

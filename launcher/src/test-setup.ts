import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { accountFor, sharedCache } from './account.js'
import { freePort } from './ports.js'
import { startPostgres } from './postgres.js'
import { findPostgres } from './postgres-binaries.js'

/** One Postgres for all tests of a run; OVERLAY_TEST_POSTGRES names another one, or the directory of its binaries. */
export async function setup(): Promise<() => Promise<void>> {
  const given = process.env.OVERLAY_TEST_POSTGRES
  if (given?.startsWith('postgres')) {
    process.env.OVERLAY_TEST_POSTGRES_URL = given
    return async () => undefined
  }
  const home = await mkdtemp(join(tmpdir(), 'overlay-test-'))
  const account = await accountFor(join(home, 'postgres'))
  await chmod(home, 0o711)
  const postgres = await startPostgres({
    account,
    binaries: given ?? (await findPostgres(account, sharedCache(home))).directory,
    directory: join(home, 'postgres'),
    port: await freePort(),
  })
  process.env.OVERLAY_TEST_POSTGRES_URL = postgres.url
  return async () => {
    await postgres.stop()
    await rm(home, { recursive: true })
  }
}

import { chmod, lstat, mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { type Accounts, give, isReachable } from './account.js'

/** Where the processes of one machine meet: no other user can enter, so no other user can take a place in it. */
export interface RunDirectory {
  readonly path: string
  /** For the sockets of the services. */
  readonly rpc: string
  /** For the socket of Postgres. */
  readonly postgres: string
  remove(): Promise<void>
}

/** Of Linux and macOS, without the final zero. */
const LONGEST_SOCKET_PATH = 103
const longestName = Math.max('/postgres/.s.PGSQL.5432.lock'.length, '/rpc-XXXXXX/sessions-16.sock'.length)

/**
 * Makes it anew, below `home`; where the paths of sockets would become too long, or the accounts could not enter, in the
 * system's directory for that.
 * @param id tells this home from others there
 */
export async function makeRunDirectory(home: string, id: string, accounts: Accounts): Promise<RunDirectory> {
  const { database } = accounts
  const isShared = database.uid !== undefined
  const own = (await isReachable(dirname(home), database)) ? [join(home, 'run')] : []
  const elsewhere = isShared && (await isReachable('/run', database).catch(() => false)) ? '/run' : tmpdir()
  const path = [...own, join(elsewhere, `overlay-${id}`)].find(isFit)
  if (path === undefined)
    throw new Error(
      `OVERLAY_HOME is too long a path for sockets, or has a comma: at most ${LONGEST_SOCKET_PATH - longestName - '/run'.length} bytes are possible; or set TMPDIR to a shorter one`,
    )
  const found = await lstat(path).catch((err: NodeJS.ErrnoException) => {
    if (err.code !== 'ENOENT') throw err
  })
  if (found && (!found.isDirectory() || found.uid !== process.getuid?.()))
    throw new Error(`${path} belongs to another user: remove it, or set OVERLAY_HOME to a shorter path`)
  await rm(path, { recursive: true, force: true })
  await mkdir(path, { mode: 0o700 }) // fails if another user has made it meanwhile
  // through which an account passes, but to read; what lies in it has rights of its own
  await chmod(path, isShared ? 0o711 : 0o700)
  if (isShared && path === own[0]) await chmod(home, 0o711)
  const postgres = join(path, 'postgres')
  await mkdir(postgres, { mode: 0o700 })
  // of this start: processes of a killed launcher remove their sockets when they end
  const rpc = await mkdtemp(join(path, 'rpc-'))
  await give(rpc, accounts.processes)
  return {
    path,
    rpc,
    postgres,
    remove: () => rm(path, { recursive: true, force: true }),
  }
}

/** Addresses and Postgres' setting are lists with commas. */
const isFit = (path: string): boolean =>
  Buffer.byteLength(path) + longestName <= LONGEST_SOCKET_PATH && !path.includes(',')

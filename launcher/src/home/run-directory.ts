import { chmod, lstat, mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { SOCKET_PATH_BYTES } from '../limits.js'
import { type Accounts, admitAccounts, chownTo, isReachable, refuseOtherFiles } from '../system/account.js'
import { ignoreMissing } from '../system/files.js'

/** The directory of sockets and certificates of one machine. Other users cannot create files in it. */
export interface RunDirectory {
  readonly path: string
  /** Has the sockets of the services. */
  readonly rpc: string
  /** Has the socket of Postgres. */
  readonly postgres: string
  /** Has the certificates of the processes. */
  readonly tls: string
  remove(): Promise<void>
}

const longestName = Math.max('/postgres/.s.PGSQL.5432.lock'.length, '/rpc-XXXXXX/sessions-16.sock'.length)

/**
 * The path of the run directory: below `home`, or in the system's directory for that if the paths of sockets would
 * become too long or the accounts could not enter.
 * @param id distinguishes the homes in the system's directory
 */
export async function runPathOf(home: string, id: string, { database }: Accounts): Promise<string> {
  const own = (await isReachable(dirname(home), database)) ? [join(home, 'run')] : []
  const systemDirectory =
    database.uid !== undefined && (await isReachable('/run', database).catch(() => false)) ? '/run' : tmpdir()
  const path = [...own, join(systemDirectory, `overlay-${id}`)].find(isFit)
  if (path === undefined)
    throw new Error(
      `OVERLAY_HOME is too long a path for sockets, or has a comma: at most ${SOCKET_PATH_BYTES - longestName - '/run'.length} bytes are possible; or set TMPDIR to a shorter one`,
    )
  return path
}

/** Creates an empty run directory. */
export async function makeRunDirectory(home: string, id: string, accounts: Accounts): Promise<RunDirectory> {
  const isShared = accounts.database.uid !== undefined
  const path = await runPathOf(home, id, accounts)
  const existing = await lstat(path).catch(ignoreMissing)
  if (existing && (!existing.isDirectory() || existing.uid !== process.getuid?.()))
    throw new Error(`${path} belongs to another user: remove it, or set OVERLAY_HOME to a shorter path`)
  if (existing) await refuseOtherFiles(path, /^(postgres|rpc-\w+|nats\.conf|tls)$/)
  await rm(path, { recursive: true, force: true })
  await mkdir(path, { mode: 0o700 }) // fails if another user has created it in the meantime
  // other accounts may enter it, but not read it; its content has its own modes
  await chmod(path, isShared ? 0o711 : 0o700)
  if (isShared && path === join(home, 'run')) await admitAccounts(home)
  const postgres = join(path, 'postgres')
  await mkdir(postgres, { mode: 0o700 })
  const tls = join(path, 'tls')
  await mkdir(tls, { mode: 0o700 })
  if (isShared) await chmod(tls, 0o711)
  // new for each start: processes of a killed launcher remove their sockets when they end
  const rpc = await mkdtemp(join(path, 'rpc-'))
  await chownTo(rpc, accounts.processes)
  return {
    path,
    rpc,
    postgres,
    tls,
    remove: () => rm(path, { recursive: true, force: true }),
  }
}

/** Lists of addresses and Postgres's setting separate paths by commas. */
const isFit = (path: string): boolean =>
  Buffer.byteLength(path) + longestName <= SOCKET_PATH_BYTES && !path.includes(',')

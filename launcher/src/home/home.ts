import { link, lstat, readFile, readlink, rename, rm, symlink, writeFile } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import {
  type Account,
  type Accounts,
  accountsOf,
  admitAccounts,
  DEFAULT_UID,
  isReachable,
} from '../system/account.js'
import { fileReason, ignoreMissing } from '../system/files.js'
import { startTimeOf } from '../system/process-identity.js'
import { claimHome, userName } from './home-directory.js'
import { addressFile, lockFile, secretsFile, startFile, writeInHome } from './home-files.js'
import { runningLauncher } from './installation.js'
import { makeRunDirectory, type RunDirectory } from './run-directory.js'
import { newSecrets, readSecrets, type Secrets } from './secrets.js'
import { systemDirectory } from './system-directory.js'

export interface Home {
  readonly directory: string
  readonly secrets: Secrets
  readonly accounts: Accounts
  readonly run: RunDirectory
  path(name: string): string
  /** Writes a file that only the owner of the home can read. */
  write(name: string, text: string): Promise<void>
  release(): Promise<void>
}

/**
 * Creates the state directory if it is missing, and locks it against other launchers.
 * @param initial secrets of a new home; random ones if absent
 */
export async function openHome(
  configured: string,
  accounts = accountsOf(DEFAULT_UID),
  initial?: Secrets,
): Promise<Home> {
  const directory = await claimHome(configured)
  const path = (name: string): string => join(directory, name)
  const write = (name: string, text: string): Promise<void> => writeInHome(directory, name, text)
  await takeLock(directory).catch(explain(directory))
  const unlock = async (): Promise<void> => {
    for (const name of [addressFile, startFile, lockFile]) await rm(path(name), { force: true })
  }
  try {
    await write(startFile, `${process.pid}\n${await startTimeOf(process.pid)}\n`)
    const stored = await readSecrets(path(secretsFile))
    const secrets = stored?.secrets ?? initial ?? newSecrets()
    const text = `${JSON.stringify(secrets, null, 2)}\n`
    if (text !== stored?.text) await write(secretsFile, text)
    const run = await makeRunDirectory(directory, secrets.id, accounts)
    const release = async (): Promise<void> => {
      await run.remove()
      await unlock()
    }
    return { directory, secrets, accounts, run, path, write, release }
  } catch (err) {
    await unlock()
    return explain(directory)(err)
  }
}

/** Rethrows. An error of the file system says what is needed. */
const explain =
  (directory: string) =>
  (err: unknown): never => {
    const reason = fileReason(err)
    if (reason === undefined) throw err
    throw new Error(
      `cannot write to OVERLAY_HOME ${directory}: ${reason}; it must be writable for ${userName(process.getuid?.() ?? 0)} and have free space, or set OVERLAY_HOME to another directory`,
    )
  }

/**
 * The directory of the database or of the snapshots of a home. Started as root, another account owns it. If that
 * account cannot enter the directories above the home, the home has a link to a directory below /var/lib.
 */
export async function dataDirectory(
  home: Pick<Home, 'directory' | 'path' | 'secrets'>,
  name: 'postgres' | 'snapshots',
  account: Account,
): Promise<string> {
  const own = home.path(name)
  const existing = await lstat(own).catch(() => undefined)
  if (existing?.isSymbolicLink()) return resolve(home.directory, await readlink(own))
  if (account.uid === undefined) return own
  if ((existing && name === 'postgres') || (await isReachable(dirname(home.directory), account))) {
    await admitAccounts(home.directory)
    return own
  }
  if (existing) return own // of an earlier version, even if its owner cannot reach it
  const parent = await systemDirectory('/var/lib/overlay')
  const elsewhere = join(parent, home.secrets.id + (name === 'postgres' ? '' : `-${name}`))
  await symlink(elsewhere, own)
  return elsewhere
}

/** Creates a file with our process id. The file of a launcher that was killed does not count. */
async function takeLock(directory: string): Promise<void> {
  const file = join(directory, lockFile)
  const own = `${file}.${process.pid}`
  await writeFile(own, String(process.pid), { mode: 0o600 })
  try {
    while (!(await isLinked(own, file))) {
      const expected = await readFile(file, 'utf8').catch(ignoreMissing)
      const pid = await runningLauncher(directory)
      if (pid !== undefined) {
        const address = await readFile(join(directory, addressFile), 'utf8').catch(() => '')
        const at = address && ` at https://${address.trim()}`
        throw new Error(
          `already running${at}: process ${pid} uses OVERLAY_HOME ${directory}; stop it (kill ${pid}), or set OVERLAY_HOME to another directory`,
        )
      }
      await removeStaleLock(file, expected)
    }
  } finally {
    await rm(own)
  }
}

/** Removes a stale lock, whose content is `expected`. The lock of a launcher that was faster stays. */
export async function removeStaleLock(file: string, expected: string | undefined): Promise<void> {
  if ((await readFile(file, 'utf8').catch(ignoreMissing)) !== expected) return
  const stale = `${file}.${process.pid}.stale`
  try {
    await rename(file, stale) // unlike a removal, it shows which lock it has taken away
  } catch (err) {
    return ignoreMissing(err as NodeJS.ErrnoException)
  }
  if ((await readFile(stale, 'utf8')) !== expected) await isLinked(stale, file)
  await rm(stale)
}

/** Gives the file a second name, under which it is complete from the start. False: the name is taken. */
const isLinked = (file: string, name: string): Promise<boolean> =>
  link(file, name).then(
    () => true,
    (err: NodeJS.ErrnoException) => {
      if (err.code !== 'EEXIST') throw err
      return false
    },
  )

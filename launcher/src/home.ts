import { randomBytes } from 'node:crypto'
import {
  chmod,
  link,
  lstat,
  mkdir,
  readFile,
  readlink,
  rename,
  rm,
  symlink,
  writeFile,
} from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { type Account, type Accounts, accountsOf, DEFAULT_UID, isReachable } from './account.js'
import { commandLineOf } from './command-line.js'
import { makeRunDirectory, type RunDirectory } from './run-directory.js'
import { type Service, services } from './schemas.js'

/** Secret values that stay the same across starts. */
export interface Secrets {
  readonly id: string // of this home
  readonly postgresPassword: string
  readonly peerSecret: string
  /** Each opens only the values of its service. */
  readonly keySecrets: Readonly<Record<'identity' | 'pki', string>>
  readonly rolePasswords: Readonly<Record<Service, string>>
}

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

/** Creates the state directory if it is missing, and locks it against other launchers. */
export async function openHome(directory: string, accounts = accountsOf(DEFAULT_UID)): Promise<Home> {
  await mkdir(directory, { recursive: true })
  await chmod(directory, 0o700)
  const path = (name: string): string => join(directory, name)
  const lock = path('launcher.pid')
  await takeLock(lock, directory)
  const unlock = (): Promise<void> => rm(lock, { force: true })
  const write = async (name: string, text: string): Promise<void> => {
    const unfinished = path(`${name}.unfinished`)
    await rm(unfinished, { force: true }) // the mode below is for new files only
    await writeFile(unfinished, text, { mode: 0o600, flush: true })
    await rename(unfinished, path(name))
  }
  const stored = await readFile(path('secrets.json'), 'utf8').catch((err: NodeJS.ErrnoException) => {
    if (err.code !== 'ENOENT') throw err
  })
  const secrets = stored === undefined ? newSecrets() : secretsIn(stored)
  const text = `${JSON.stringify(secrets, null, 2)}\n`
  if (text !== stored) await write('secrets.json', text)
  const run = await makeRunDirectory(directory, secrets.id, accounts).catch(async (err: unknown) => {
    await unlock()
    throw err
  })
  const release = async (): Promise<void> => {
    await run.remove()
    await unlock()
  }
  return { directory, secrets, accounts, run, path, write, release }
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
  if (existing?.isSymbolicLink()) return readlink(own)
  if (account.uid === undefined) return own
  if ((existing && name === 'postgres') || (await isReachable(dirname(home.directory), account))) {
    await chmod(home.directory, 0o711) // other accounts may enter it, but not read it
    return own
  }
  if (existing) return own // of an earlier version, even if its owner cannot reach it
  const elsewhere = join('/var/lib/overlay', home.secrets.id + (name === 'postgres' ? '' : `-${name}`))
  await mkdir(dirname(elsewhere), { recursive: true })
  await chmod(dirname(elsewhere), 0o755)
  await symlink(elsewhere, own)
  return elsewhere
}

const secret = (bytes: number): string => randomBytes(bytes).toString('base64url')

const newSecrets = (): Secrets => ({
  id: secret(9),
  postgresPassword: secret(24),
  peerSecret: secret(32),
  keySecrets: { identity: secret(32), pki: secret(32) },
  rolePasswords: newRolePasswords(),
})

const newRolePasswords = () =>
  Object.fromEntries(services.map((service) => [service, secret(24)])) as Record<Service, string>

/**
 * A home of an earlier version may lack passwords of services that are new, and has one key secret for both services.
 * pki keeps it.
 */
function secretsIn(text: string): Secrets {
  const { keySecret, ...stored } = JSON.parse(text) as Secrets & { readonly keySecret?: string }
  const secrets = { ...stored, rolePasswords: { ...newRolePasswords(), ...stored.rolePasswords } }
  if (keySecret === undefined) return secrets
  return { ...secrets, keySecrets: { identity: secret(32), pki: keySecret } }
}

/** Creates a file with our process id. The file of a launcher that was killed does not count. */
async function takeLock(file: string, directory: string): Promise<void> {
  const own = `${file}.${process.pid}`
  await writeFile(own, String(process.pid), { mode: 0o600 })
  try {
    while (!(await isLinked(own, file))) {
      const pid = Number(await readFile(file, 'utf8').catch(() => ''))
      if (pid !== process.pid && (await commandLineOf(pid)).includes('node')) {
        throw new Error(
          `${directory} is in use by another launcher, process ${pid}: stop it, or set OVERLAY_HOME`,
        )
      }
      await rm(file, { force: true })
    }
  } finally {
    await rm(own)
  }
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

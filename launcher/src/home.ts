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
import { commandOf } from './command-of.js'
import { makeRunDirectory, type RunDirectory } from './run-directory.js'
import { type Service, services } from './schemas.js'

/** What must stay the same from start to start, and secret. */
export interface Secrets {
  readonly id: string // of this home
  readonly postgresPassword: string
  readonly peerSecret: string
  /** Each opens only what its service keeps. */
  readonly keySecrets: Readonly<Record<'identity' | 'pki', string>>
  readonly rolePasswords: Readonly<Record<Service, string>>
}

export interface Home {
  readonly directory: string
  readonly secrets: Secrets
  readonly accounts: Accounts
  readonly run: RunDirectory
  path(name: string): string
  /** For the owner of this home only. */
  write(name: string, text: string): Promise<void>
  release(): Promise<void>
}

/** Makes the state directory if it is missing, and keeps other launchers out of it. */
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
  const known = await readFile(path('secrets.json'), 'utf8').catch((err: NodeJS.ErrnoException) => {
    if (err.code !== 'ENOENT') throw err
  })
  const secrets = known === undefined ? newSecrets() : secretsIn(known)
  const text = `${JSON.stringify(secrets, null, 2)}\n`
  if (text !== known) await write('secrets.json', text)
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
 * Where the database or the snapshots of a home lie. Started as root, another account owns them: where it cannot pass
 * through the directories above the home, a link stands there, and the data lies with the system's.
 */
export async function dataDirectory(
  home: Pick<Home, 'directory' | 'path' | 'secrets'>,
  name: 'postgres' | 'snapshots',
  account: Account,
): Promise<string> {
  const own = home.path(name)
  const found = await lstat(own).catch(() => undefined)
  if (found?.isSymbolicLink()) return readlink(own)
  if (account.uid === undefined) return own
  if ((found && name === 'postgres') || (await isReachable(dirname(home.directory), account))) {
    await chmod(home.directory, 0o711) // may be passed through, not read
    return own
  }
  if (found) return own // of an earlier version; its new owner cannot reach it
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
  rolePasswords: Object.fromEntries(services.map((service) => [service, secret(24)])) as Record<
    Service,
    string
  >,
})

/** Those of a home that is older than separate key secrets: pki keeps the one that identity had too. */
function secretsIn(text: string): Secrets {
  const { keySecret, ...stored } = JSON.parse(text) as Secrets & { readonly keySecret?: string }
  if (keySecret === undefined) return stored
  return { ...stored, keySecrets: { identity: secret(32), pki: keySecret } }
}

/** A file with our process id. One that a killed launcher left behind counts for nothing. */
async function takeLock(file: string, directory: string): Promise<void> {
  const ours = `${file}.${process.pid}`
  await writeFile(ours, String(process.pid), { mode: 0o600 })
  try {
    while (!(await isLinked(ours, file))) {
      const pid = Number(await readFile(file, 'utf8').catch(() => ''))
      if (pid !== process.pid && (await commandOf(pid)).includes('node')) {
        throw new Error(
          `${directory} is in use by another launcher, process ${pid}: stop it, or set OVERLAY_HOME`,
        )
      }
      await rm(file, { force: true })
    }
  } finally {
    await rm(ours)
  }
}

/** Whether the file has got this name too: nobody ever sees it without its content. */
const isLinked = (file: string, name: string): Promise<boolean> =>
  link(file, name).then(
    () => true,
    (err: NodeJS.ErrnoException) => {
      if (err.code !== 'EEXIST') throw err
      return false
    },
  )

import { readdir, realpath, stat } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { providedKeySettings } from '@overlay/pki/settings'
import { type Account, isReachable } from '../system/account.js'
import { fileReason } from '../system/files.js'

type Paths = Readonly<Partial<Record<keyof typeof providedKeySettings, string | undefined>>>

/** A line for each of the operator's keys that the launcher reads, and pki under its account does not. */
export function unreadableKeys(paths: Paths, account: Account): Promise<readonly string[]> {
  const names = Object.keys(providedKeySettings) as (keyof typeof providedKeySettings)[]
  return unreadable(
    names.map((name) => [providedKeySettings[name].env, paths[name]]),
    account,
    { reader: 'pki runs', remedy: 'changes wait for the next start' },
  )
}

/** A line for each directory for TLS to a server that the processes cannot read under their account. */
export const unreadableTls = (
  directories: Readonly<Record<string, string | undefined>>,
  account: Account,
): Promise<readonly string[]> =>
  unreadable(Object.entries(directories), account, {
    reader: 'the processes run',
    remedy: 'make it readable for this account',
  })

async function unreadable(
  paths: readonly (readonly [setting: string, path: string | undefined])[],
  account: Account,
  { reader, remedy }: { readonly reader: string; readonly remedy: string },
): Promise<readonly string[]> {
  const lines = await Promise.all(
    paths.map(async ([setting, path]) =>
      path === undefined || (await isReadable(resolve(path), account))
        ? []
        : [
            `${setting}: user id ${account.uid}, under which ${reader}, cannot read all of ${path}: ${remedy}`,
          ],
    ),
  )
  return lines.flat()
}

async function isReadable(path: string, account: Account): Promise<boolean> {
  if (account.uid === undefined) return true
  const stats = await stat(path)
  if (!stats.isDirectory())
    return isReachable(join(path, '..'), account).then((may) => may && mayRead(stats, account))
  if (!(await isReachable(path, account))) return false
  const files = (await readdir(path)).filter((name) => !name.startsWith('.'))
  const readable = await Promise.all(
    files.map(async (name) => {
      const file = await realpath(join(path, name)) // as Kubernetes mounts a secret, the files are links
      return mayRead(await stat(file), account) && (await isReachable(dirname(file), account))
    }),
  )
  return readable.every(Boolean)
}

function mayRead(
  stats: { readonly mode: number; readonly uid: number; readonly gid: number },
  { uid, gid }: Account,
): boolean {
  if (uid === undefined) return true
  const bit = stats.uid === uid ? 0o400 : stats.gid === gid ? 0o040 : 0o004
  return (stats.mode & bit) !== 0
}

/**
 * The absolute path of the web console's directory.
 * @throws Error if there is no console, or if the account of the gateway cannot read it
 */
export async function consoleDirectory(directory: string, account: Account): Promise<string> {
  const path = resolve(directory)
  const index = join(path, 'index.html')
  const stats = await stat(index).catch((err: NodeJS.ErrnoException) => {
    throw new Error(
      `OVERLAY_CONSOLE must name the directory of a built web console: ${index} cannot be read: ${err.code === 'ENOENT' ? 'there is no such file' : (fileReason(err) ?? err.code)}`,
    )
  })
  if (!stats.isFile())
    throw new Error(`OVERLAY_CONSOLE must name the directory of a built web console: ${index} is no file`)
  if (!mayRead(stats, account) || !(await isReachable(path, account)))
    throw new Error(
      `OVERLAY_CONSOLE: the processes run as user ${account.uid}, which cannot read ${index}. Make the files readable (chmod -R a+rX), or move them to a directory that the user can enter`,
    )
  return path
}

import { stat } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { type Account, isReachable } from '../system/account.js'

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
      `OVERLAY_CONSOLE must name the directory of a built web console: ${index} cannot be read: ${err.message}`,
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

import { stat } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { type Account, isReachable } from '../home/account.js'
import { fileReason } from '../home/file-errors.js'

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
  const { uid } = account
  const mayRead = uid === undefined || (stats.mode & (stats.uid === uid ? 0o400 : 0o004)) !== 0
  if (!mayRead || !(await isReachable(path, account)))
    throw new Error(
      `OVERLAY_CONSOLE: the processes run as user ${uid}, which cannot read ${index}. Make the files readable (chmod -R a+rX), or move them to a directory that the user can enter`,
    )
  return path
}

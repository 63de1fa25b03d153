import { chmod, lstat, mkdir } from 'node:fs/promises'
import { dirname } from 'node:path'
import { ignoreMissing } from '../system/files.js'
import { userName } from './home-directory.js'

/**
 * A directory of the system that root shares with the accounts of the processes, such as `/var/lib/overlay`. Only a new
 * one gets a mode; an existing one must belong to root, and others may enter it but not write to it.
 */
export async function systemDirectory(path: string): Promise<string> {
  await mkdir(dirname(path), { recursive: true })
  const created = await mkdir(path, { recursive: true })
  if (created !== undefined) {
    await chmod(path, 0o755) // regardless of the umask
    return path
  }
  const status = await lstat(path).catch(ignoreMissing)
  const uid = process.getuid?.()
  const problem = !status?.isDirectory()
    ? 'is not a directory'
    : status.uid !== uid
      ? `belongs to ${userName(status.uid)}`
      : status.mode & 0o022
        ? 'can be written by other users'
        : status.mode & 0o001
          ? undefined
          : 'cannot be entered by other users'
  if (problem !== undefined)
    throw new Error(
      `${path} ${problem}: root needs it for files that the accounts of the processes reach. Rename it, or give it to root with mode 755`,
    )
  return path
}

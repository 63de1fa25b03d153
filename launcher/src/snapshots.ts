import { mkdir, stat } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { give, isReachable } from './account.js'
import { dataDirectory, type Home } from './home.js'
import type { LauncherSettings } from './settings.js'

/** The directory of snapshots, made for the account of the processes. One that an operator has made stays theirs. */
export async function snapshotsDirectory(
  { snapshots }: Pick<LauncherSettings, 'snapshots'>,
  home: Home,
  say: (line: string) => void,
): Promise<string> {
  const account = home.accounts.processes
  const directory =
    snapshots === undefined ? await dataDirectory(home, 'snapshots', account) : resolve(snapshots)
  await mkdir(dirname(directory), { recursive: true }) // the mode of the directory itself would shut the account out
  const made = await mkdir(directory, { recursive: true, mode: 0o700 })
  if (made !== undefined || snapshots === undefined) await give(directory, account)
  const { uid } = await stat(directory)
  if (account.uid !== undefined && !(uid === account.uid && (await isReachable(directory, account))))
    say(
      `snapshots may fail: ${directory} must belong to user ${account.uid} and be within its reach, because the processes run as that user`,
    )
  return directory
}

import { mkdir, stat } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import type { LauncherSettings } from '../settings/settings.js'
import { chownTo, isReachable } from '../system/account.js'
import { dataDirectory, type Home } from './home.js'

/** The directory of snapshots, created for the account of the processes. An existing directory keeps its owner. */
export async function snapshotsDirectory(
  { snapshots }: Pick<LauncherSettings, 'snapshots'>,
  home: Home,
  print: (line: string) => void,
): Promise<string> {
  const account = home.accounts.processes
  const directory =
    snapshots === undefined ? await dataDirectory(home, 'snapshots', account) : resolve(snapshots)
  await mkdir(dirname(directory), { recursive: true }) // with the mode below, the account could not enter the parents
  const created = await mkdir(directory, { recursive: true, mode: 0o700 })
  // the target of a link may be a directory of others
  const isOwn = snapshots === undefined && directory === home.path('snapshots')
  if (created !== undefined || isOwn) await chownTo(directory, account)
  const { uid } = await stat(directory)
  if (account.uid !== undefined && !(uid === account.uid && (await isReachable(directory, account))))
    print(
      `snapshots may fail: ${directory} must belong to user ${account.uid} and be within its reach, because the processes run as that user`,
    )
  return directory
}

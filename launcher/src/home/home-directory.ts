import { lstat, mkdir, readdir, realpath, stat } from 'node:fs/promises'
import { dirname, join, sep } from 'node:path'
import { fileReason, ignoreMissing } from '../system/files.js'
import { projectRoot } from '../system/project-root.js'
import { caFile, launcherLog, passwordFile, secretsFile } from './home-files.js'

/** What an interrupted first start leaves, and what a new file system contains. */
const leftover =
  /^(launcher\.(pid(\.\d+(\.stale)?)?|(address|start)(\.unfinished)?)|secrets\.json\.unfinished|lost\+found)$/

/** Names that show that a directory is a home which has lost its secrets. */
const traces = ['postgres', caFile, passwordFile, launcherLog, `${launcherLog}.1`]

/**
 * The path of the home, without symbolic links. Creates a directory that is missing. An existing one is accepted if it
 * belongs to this user, only this user can write to it, and it is empty or has `secrets.json`. Nothing in a refused
 * directory has changed, nor has its mode.
 */
export async function claimHome(directory: string, program = projectRoot): Promise<string> {
  try {
    if ((await realpath(directory).catch(ignoreMissing)) === undefined) await create(directory)
    const path = await realpath(directory)
    await refuseForeign(path, await realpath(program)) // a new one, too: somebody else may have created it meanwhile
    return path
  } catch (err) {
    const reason = fileReason(err)
    if (reason === undefined) throw err
    throw new Error(`cannot use OVERLAY_HOME ${directory}: ${reason}; ${another}`)
  }
}

const another = 'set OVERLAY_HOME to a new or empty directory of your own'

async function create(directory: string): Promise<void> {
  if (await lstat(directory).catch(ignoreMissing))
    throw new Error(
      `OVERLAY_HOME ${directory} is a symbolic link to a missing directory: create it, or ${another}`,
    )
  await mkdir(dirname(directory), { recursive: true }) // with the mode below, other accounts could not enter the parents
  await mkdir(directory, { recursive: true, mode: 0o700 })
}

async function refuseForeign(directory: string, program: string): Promise<void> {
  const refuse = (problem: string): never => {
    throw new Error(`OVERLAY_HOME ${directory} ${problem}`)
  }
  const status = await stat(directory)
  if (!status.isDirectory()) refuse(`is not a directory: ${another}`)
  if (contains(directory, program))
    refuse(`contains this program: set it to a directory of its own, such as ${join(program, '.overlay')}`)
  const uid = process.getuid?.() ?? status.uid
  if (status.uid !== uid)
    refuse(
      `belongs to ${userName(status.uid)}, and the product is started by ${userName(uid)}: start it as the owner, or ${another}`,
    )
  const names = await readdir(directory)
  if (!names.includes(secretsFile)) {
    if (traces.some((name) => names.includes(name)))
      refuse(
        `has data of the product, but no ${secretsFile}: restore this file from a backup, because keys and second factors cannot be read without it; or, to begin with an empty network, ${another}`,
      )
    if (!names.every((name) => leftover.test(name)))
      refuse(`is not empty, and it is not a home of this product (it has no ${secretsFile}): ${another}`)
  }
  if (status.mode & 0o022) refuse(`can be written by other users: run chmod go-w ${directory}, or ${another}`)
}

const contains = (directory: string, path: string): boolean =>
  path === directory || path.startsWith(directory.endsWith(sep) ? directory : directory + sep)

export const userName = (uid: number): string => (uid === 0 ? 'root' : `user ${uid}`)

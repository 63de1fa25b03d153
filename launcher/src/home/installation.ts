import { readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { commandLineOf, startTimeOf } from '../system/process-identity.js'
import { userName } from './home-directory.js'
import { lockFile, secretsFile, startFile } from './home-files.js'
import { readSecrets, type Secrets } from './secrets.js'

/**
 * The secrets of the installation in a home, for commands. Throws if there is none, or if it belongs
 * to another user: the next start would refuse files of this one.
 */
export async function requireInstallation(home: string): Promise<Secrets> {
  const missing = `no installation in ${home}: set OVERLAY_HOME`
  const { uid } = await stat(home).catch((cause: unknown) => {
    throw new Error(missing, { cause })
  })
  const own = process.getuid?.() ?? uid
  if (uid !== own)
    throw new Error(
      `OVERLAY_HOME ${home} belongs to ${userName(uid)}: run this as its owner, not as ${userName(own)}`,
    )
  const stored = await readSecrets(join(home, secretsFile))
  if (!stored) throw new Error(missing)
  return stored.secrets
}

/** The process id of another launcher that runs with this home. Undefined: none does. */
export async function runningLauncher(home: string): Promise<number | undefined> {
  const read = (name: string): Promise<string> => readFile(join(home, name), 'utf8').catch(() => '')
  const pid = Number(await read(lockFile))
  if (pid === process.pid) return undefined // of a killed launcher: in a container, ids are soon used again
  if (!(pid > 0 && (await commandLineOf(pid)).includes('node'))) return undefined
  const [id, start] = (await read(startFile)).split('\n')
  // the file is missing or of another launcher while this one begins, and with the former release
  return Number(id) !== pid || start === (await startTimeOf(pid)) ? pid : undefined
}

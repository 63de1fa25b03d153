import { rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

/** Files of a home that several modules name. */
export const secretsFile = 'secrets.json'
/** Has the generated password of the administrator. A backup contains it, too. */
export const passwordFile = 'admin-password'
export const caFile = 'ca.pem'
export const launcherLog = 'launcher.log'
/** Has the process id of the launcher that uses the home. */
export const lockFile = 'launcher.pid'
/** Has the same id, and when that process started. */
export const startFile = 'launcher.start'
/** The address of the APIs, for the message to a second launcher. */
export const addressFile = 'launcher.address'

/** Writes a file that only the owner of the home can read. */
export async function writeInHome(home: string, name: string, text: string): Promise<void> {
  const [path, unfinished] = [join(home, name), join(home, `${name}.unfinished`)]
  await rm(unfinished, { force: true }) // the mode below is for new files only
  await writeFile(unfinished, text, { mode: 0o600, flush: true })
  await rename(unfinished, path)
}

import { rename, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { userName } from './home-directory.js'

/** Writes a file that only the owner of the home can read. */
export async function writeInHome(home: string, name: string, text: string): Promise<void> {
  const [path, unfinished] = [join(home, name), join(home, `${name}.unfinished`)]
  await rm(unfinished, { force: true }) // the mode below is for new files only
  await writeFile(unfinished, text, { mode: 0o600, flush: true })
  await rename(unfinished, path)
}

/** For commands that write to the home of a running product: files of another owner would stop the next start. */
export async function requireOwner(home: string): Promise<void> {
  const { uid } = await stat(home).catch((cause: unknown) => {
    throw new Error(`no installation in ${home}: set OVERLAY_HOME`, { cause })
  })
  const own = process.getuid?.() ?? uid
  if (uid !== own)
    throw new Error(
      `OVERLAY_HOME ${home} belongs to ${userName(uid)}: run this as its owner, not as ${userName(own)}`,
    )
}

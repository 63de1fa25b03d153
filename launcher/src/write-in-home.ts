import { rename, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { chownTo } from './account.js'

/** Writes a file that only the owner of the home can read, also if root writes it. */
export async function writeInHome(home: string, name: string, text: string): Promise<void> {
  const [path, unfinished] = [join(home, name), join(home, `${name}.unfinished`)]
  await rm(unfinished, { force: true }) // the mode below is for new files only
  await writeFile(unfinished, text, { mode: 0o600, flush: true })
  if (process.getuid?.() === 0) await chownTo(unfinished, await stat(home))
  await rename(unfinished, path)
}

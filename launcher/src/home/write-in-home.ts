import { rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

/** Writes a file that only the owner of the home can read. */
export async function writeInHome(home: string, name: string, text: string): Promise<void> {
  const [path, unfinished] = [join(home, name), join(home, `${name}.unfinished`)]
  await rm(unfinished, { force: true }) // the mode below is for new files only
  await writeFile(unfinished, text, { mode: 0o600, flush: true })
  await rename(unfinished, path)
}

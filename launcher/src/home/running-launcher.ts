import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { commandLineOf } from '../processes/command-line.js'
import { lockFile } from './home-files.js'

/** The process id of another launcher that runs with this home. Undefined: none does. */
export async function runningLauncher(home: string): Promise<number | undefined> {
  const pid = Number(await readFile(join(home, lockFile), 'utf8').catch(() => ''))
  if (pid === process.pid) return undefined // of a killed launcher: in a container, ids are soon used again
  return pid > 0 && (await commandLineOf(pid)).includes('node') ? pid : undefined
}

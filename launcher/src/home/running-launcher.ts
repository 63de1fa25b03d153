import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { commandLineOf } from '../processes/command-line.js'
import { startOf } from '../processes/start-of.js'
import { lockFile, startFile } from './home-files.js'

/** The process id of another launcher that runs with this home. Undefined: none does. */
export async function runningLauncher(home: string): Promise<number | undefined> {
  const read = (name: string): Promise<string> => readFile(join(home, name), 'utf8').catch(() => '')
  const pid = Number(await read(lockFile))
  if (pid === process.pid) return undefined // of a killed launcher: in a container, ids are soon used again
  if (!(pid > 0 && (await commandLineOf(pid)).includes('node'))) return undefined
  const [id, start] = (await read(startFile)).split('\n')
  // the file is missing or of another launcher while this one begins, and with the former release
  return Number(id) !== pid || start === (await startOf(pid)) ? pid : undefined
}

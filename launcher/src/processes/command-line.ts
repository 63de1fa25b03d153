import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { promisify } from 'node:util'

/** The command line of a process; empty if no process has this id. */
export async function commandLineOf(pid: number): Promise<string> {
  if (process.platform === 'linux') {
    const words = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')
    return words.replaceAll('\0', ' ')
  }
  return promisify(execFile)('ps', ['-o', 'command=', '-p', String(pid)]).then(
    ({ stdout }) => stdout.trim(),
    () => '',
  )
}

import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { promisify } from 'node:util'

/** When a process started, to tell it from others that get its id later. Empty if no process has this id. */
export async function startOf(pid: number): Promise<string> {
  if (process.platform === 'linux') return linuxStartOf(pid).catch(() => '')
  // the same text in any time zone and language
  const env = { PATH: process.env.PATH, LC_ALL: 'C', TZ: 'UTC0' }
  return promisify(execFile)('ps', ['-o', 'lstart=', '-p', String(pid)], { env }).then(
    ({ stdout }) => stdout.trim(),
    () => '',
  )
}

/** The boot of the machine, and the clock ticks from then to the start of the process. */
async function linuxStartOf(pid: number): Promise<string> {
  const boot = await readFile('/proc/sys/kernel/random/boot_id', 'utf8')
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8')
  const fromThird = stat.slice(stat.lastIndexOf(')') + 2).split(' ') // the second has the name, in parentheses
  return `${boot.trim()} ${fromThird[22 - 3]}`
}

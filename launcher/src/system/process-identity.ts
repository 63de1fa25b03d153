import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { promisify } from 'node:util'

/** The command line of a process; empty if no process has this id. */
export async function commandLineOf(pid: number): Promise<string> {
  if (process.platform === 'linux') {
    const words = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')
    return words.replaceAll('\0', ' ')
  }
  return psField(pid, 'command=')
}

/** When a process started, to distinguish it from later processes with the same id. Empty if no process has this id. */
export async function startTimeOf(pid: number): Promise<string> {
  if (process.platform === 'linux') return linuxStartTimeOf(pid).catch(() => '')
  return psField(pid, 'lstart=')
}

/** The boot of the machine, and the clock ticks from then to the start of the process. */
async function linuxStartTimeOf(pid: number): Promise<string> {
  const boot = await readFile('/proc/sys/kernel/random/boot_id', 'utf8')
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8')
  const fromThird = stat.slice(stat.lastIndexOf(')') + 2).split(' ') // the second has the name, in parentheses
  return `${boot.trim()} ${fromThird[22 - 3]}`
}

function psField(pid: number, field: string): Promise<string> {
  const env = { PATH: process.env.PATH, LC_ALL: 'C', TZ: 'UTC0' } // the same text in any time zone and language
  return promisify(execFile)('ps', ['-o', field, '-p', String(pid)], { env }).then(
    ({ stdout }) => stdout.trim(),
    () => '',
  )
}

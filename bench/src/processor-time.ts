import { readdirSync, readFileSync } from 'node:fs'

/** CPU milliseconds since their start, by component of the product: 'gateway', 'postgres', … */
export type Times = ReadonlyMap<string, number>

const msPerTick = 10 // the unit of these times on Linux is 10 ms

interface Stat {
  readonly parent: number
  readonly ms: number // with the children that have ended
}

/** The times of these processes and all their descendants. Postgres has a process for each connection. */
export function timesOf(pids: readonly number[]): Times {
  const times = new Map<string, number>()
  for (const [pid, { ms }] of statsOf(pids)) {
    const component = componentOf(pid)
    times.set(component, (times.get(component) ?? 0) + ms)
  }
  return times
}

function statsOf(pids: readonly number[]): Map<number, Stat> {
  const stats = new Map<number, Stat>()
  for (const name of readdirSync('/proc')) {
    const stat = /^\d+$/.test(name) ? statOf(name) : undefined
    if (stat) stats.set(Number(name), stat)
  }
  const isIncluded = (pid: number): boolean => {
    for (let at = pid; at > 1; at = stats.get(at)?.parent ?? 0) if (pids.includes(at)) return true
    return false
  }
  return new Map([...stats].filter(([pid]) => isIncluded(pid)))
}

/** The process of a component that has one: its CPU since its start, and its largest resident set. */
export function processOf(
  pids: readonly number[],
  component: string,
): { readonly pid: number; readonly ms: number; readonly peakMib: number } | undefined {
  for (const [pid, { ms }] of statsOf(pids)) {
    if (componentOf(pid) !== component) continue
    return { pid, ms, peakMib: kibIn(`${pid}/status`, 'VmHWM') / 1024 }
  }
  return undefined
}

/** Resident memory of all processes of a component, in KiB. */
export function memoryKib(pids: readonly number[], component: string): number {
  let sum = 0
  for (const pid of statsOf(pids).keys()) {
    if (componentOf(pid) === component) sum += kibIn(`${pid}/status`, 'VmRSS')
  }
  return sum
}

/** Proportional set size of all processes by component, in MiB: a page counts as its share for each process that maps it. */
export function proportionalMib(pids: readonly number[]): Map<string, number> {
  const sizes = new Map<string, number>()
  for (const pid of statsOf(pids).keys()) {
    const component = componentOf(pid)
    sizes.set(component, (sizes.get(component) ?? 0) + kibIn(`${pid}/smaps_rollup`, 'Pss') / 1024)
  }
  return sizes
}

/** The number of processes by component. */
export function processesOf(pids: readonly number[]): Map<string, number> {
  const counts = new Map<string, number>()
  for (const pid of statsOf(pids).keys())
    counts.set(componentOf(pid), (counts.get(componentOf(pid)) ?? 0) + 1)
  return counts
}

export const sumOf = (times: Times): number => [...times.values()].reduce((sum, ms) => sum + ms, 0)

export const between = (from: Times, to: Times): Times =>
  new Map([...to].map(([component, ms]) => [component, ms - (from.get(component) ?? 0)]))

/** The time that all processors of the machine have worked. */
export function machineMs(): number {
  const [user = 0, nice = 0, system = 0, , , irq = 0, softirq = 0, steal = 0] =
    readFileSync('/proc/stat', 'utf8').split('\n', 1)[0]?.split(/\s+/).slice(1).map(Number) ?? []
  return (user + nice + system + irq + softirq + steal) * msPerTick
}

export function ownMs(): number {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1000
}

const readProc = (path: string): string | undefined => {
  try {
    return readFileSync(`/proc/${path}`, 'utf8')
  } catch {
    return undefined // the process has ended
  }
}

/** 0: the process has ended. */
function kibIn(path: string, field: string): number {
  const [, kib] = new RegExp(`^${field}:\\s+(\\d+) kB`, 'm').exec(readProc(path) ?? '') ?? []
  return Number(kib ?? 0)
}

function statOf(pid: string): Stat | undefined {
  const text = readProc(`${pid}/stat`)
  if (text === undefined) return undefined
  // the name before it, in parentheses, may hold anything
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
  const [user, system, endedUser, endedSystem] = fields.slice(11, 15).map(Number)
  const ticks = (user ?? 0) + (system ?? 0) + (endedUser ?? 0) + (endedSystem ?? 0)
  return { parent: Number(fields[1]), ms: ticks * msPerTick }
}

const componentNames = new Map<number, string>()

function componentOf(pid: number): string {
  const cached = componentNames.get(pid)
  if (cached) return cached
  const command = readProc(`${pid}/cmdline`) ?? ''
  const [, ours] = /(\w+)\/dist\/main\.js/.exec(command) ?? []
  const name = ours ?? readProc(`${pid}/comm`)?.trim() ?? 'ended'
  componentNames.set(pid, name)
  return name
}

import { randomInt } from 'node:crypto'
import { parseArgs } from 'node:util'
import { type Layout, scaleOf } from '@overlay/launcher/product'
import { faultNames } from './faults.js'
import { isRoot } from './topology.js'

export const usage = `npm run soak [-- OPTIONS]

Starts the product with two processes for each component, on a Postgres and a bus of its own. Several clients make random
operations through all gateways and compare every answer with a model, and routers carry traffic, while processes are
killed and paused, their clocks jump by two hours, Postgres and bus are cut off or stall, the disk is full, and Postgres
fails over to a streaming standby. From 15 minutes on, the bus is away for a minute at a time, and memory is compared: of
the time from five minutes on, the last quarter with the first. The exit code is 0 when every rule holds.

After failover-sync, nothing that was acknowledged may be lost. Before failover-async, the standby is cut off: of the rows
that were written since then, either state is right, and all gateways must agree on it; all others must be kept. A router
without grants may get nothing, change nothing of others, and end no process.

  --minutes N        length of the run (default 60)
  --round N          seconds between two looks at everything at rest (default 90)
  --seed N           repeats the choices of an earlier run, not its timing (default: a new one, printed)
  --workers N        clients with a model each (default 4)
  --contenders N     clients that work on the same rows (default 2)
  --replicas N       in place of them, N processes with all components
  --faults A,B,…     ${faultNames.join(', ')} (default: all; none: calm)
  --hostile yes|no   whether a router without grants sends every message at its limits (default yes)
  --slack N          multiplies the time limits, for slow or busy machines (default 1)
  --log FILE         events and violations as JSON lines (default: soak-SEED.log in the temporary directory)
  --help             this text`

export interface Options {
  readonly help: boolean
  readonly minutes: number
  readonly roundSeconds: number
  readonly seed: number
  readonly workers: number
  readonly contenders: number
  readonly faults: readonly string[]
  readonly slack: number
  readonly hostile: boolean
  readonly log: string | undefined
  readonly layout: Layout
}

/** Throws an error that names the option. */
export function readOptions(args: readonly string[]): Options {
  const text = (fallback?: string) => ({ type: 'string' as const, ...(fallback && { default: fallback }) })
  const { values } = parseArgs({
    args: [...args],
    options: {
      minutes: text('60'),
      round: text('90'),
      seed: text(),
      workers: text('4'),
      contenders: text('2'),
      faults: text(faultNames.join()),
      slack: text('1'),
      hostile: text('yes'),
      log: text(),
      replicas: text(),
      help: { type: 'boolean', default: false },
    },
  })
  const faults = values.faults === 'none' ? [] : (values.faults ?? '').split(',').filter(Boolean)
  if (!isRoot && faults.includes('disk-full')) {
    console.log('disk-full is left out: only root can give Postgres a disk of its own')
    faults.splice(faults.indexOf('disk-full'), 1)
  }
  const unknown = faults.find((fault) => !faultNames.some((name) => name === fault))
  if (unknown) throw new Error(`--faults: '${unknown}' is none of ${faultNames.join()}`)
  return {
    help: values.help,
    minutes: positive('minutes', values.minutes),
    roundSeconds: positive('round', values.round),
    seed: values.seed === undefined ? randomInt(1, 2 ** 31) : positive('seed', values.seed),
    workers: positive('workers', values.workers),
    contenders: Number(values.contenders),
    faults,
    slack: positive('slack', values.slack),
    hostile: yes('hostile', values.hostile),
    log: values.log,
    layout:
      values.replicas === undefined
        ? { separate: scaleOf(2) }
        : { replicas: positive('replicas', values.replicas) },
  }
}

function positive(name: string, text: string | undefined): number {
  const value = Number(text)
  if (!(value > 0)) throw new Error(`--${name}: '${text}' is not a number above 0`)
  return value
}

function yes(name: string, text: string | undefined): boolean {
  if (text !== 'yes' && text !== 'no') throw new Error(`--${name}: '${text}' is neither yes nor no`)
  return text === 'yes'
}

import { setTimeout as pause } from 'node:timers/promises'
import { withClient } from '@overlay/launcher/testing'
import { dealer, type Random } from './random.js'
import type { Topology } from './topology.js'

/** Even a short run has these. */
export const failoverNames = ['failover-sync', 'failover-async'] as const

export const faultNames = [
  'kill',
  'kill-component',
  'pause',
  'clock',
  'backends',
  'postgres-crash',
  'postgres-cut',
  'postgres-stall',
  'disk-full',
  'bus-cut',
  'bus-stall',
  ...failoverNames,
] as const
/** Processes end, or are ended since they do not answer. */
export const killingFaults: ReadonlySet<string> = new Set(['kill', 'kill-component', 'pause'])
export type FaultName = (typeof faultNames)[number]

export interface FaultOptions {
  /** How long the bus is cut off. */
  readonly busAwayMs: number
}

/**
 * Each function causes its fault for some time, ends it, and returns a description. Those that have a victim take
 * every process once before they take one again.
 */
export function faultsOf(
  { product, database, losses, bus, clocks, sameProcesses }: Topology,
  random: Random,
  { busAwayMs }: FaultOptions,
): Record<FaultName, () => Promise<string>> {
  const pidOf = (name: string): number => product.processes.get(name)?.pid() ?? noProcess()
  const victims = () => dealer(random, () => product.processes.keys())
  const [nextToKill, nextToPause, nextClock] = [victims(), victims(), victims()]
  const nextComponentToKill = dealer(random, () => sameProcesses)

  const away = async (proxy: typeof bus, how: 'cut' | 'stall', ms: number): Promise<string> => {
    proxy[how]()
    await pause(ms)
    proxy.restore()
    return `${ms} ms`
  }
  return {
    async kill() {
      const name = nextToKill() ?? noProcess()
      process.kill(pidOf(name), 'SIGKILL')
      return name
    },
    async 'kill-component'() {
      const [component, names] = nextComponentToKill() ?? noProcess()
      for (const name of names) process.kill(pidOf(name), 'SIGKILL')
      return component
    },
    async pause() {
      const name = nextToPause() ?? noProcess()
      const pid = pidOf(name)
      const ms = 5000 + random.int(15_000)
      process.kill(pid, 'SIGSTOP')
      await pause(ms)
      process.kill(pid, 'SIGCONT')
      return `${name} ${ms} ms`
    },
    async clock() {
      const name = nextClock() ?? noProcess()
      const ms = 5000 + random.int(5000)
      const by = clocks.jump(pidOf(name))
      await pause(ms)
      clocks.jump(pidOf(name))
      return `${name} ${by} ${ms} ms`
    },
    backends: async () => `${await endSomeBackends(database.primary().url)} connections`,
    async 'postgres-crash'() {
      const server = database.primary()
      await server.stop('SIGKILL')
      await server.start()
      return 'Postgres'
    },
    'postgres-cut': () => away(database.proxy, 'cut', 2000 + random.int(3000)),
    'postgres-stall': () => away(database.proxy, 'stall', 2000 + random.int(3000)),
    async 'disk-full'() {
      const ms = 4000 + random.int(4000)
      const end = await database.primary().fillDisk()
      await pause(ms)
      await end()
      return `${ms} ms`
    },
    'bus-cut': () => away(bus, 'cut', busAwayMs),
    'bus-stall': () => away(bus, 'stall', 4000 + random.int(4000)),
    async 'failover-sync'() {
      const ms = 2000 + random.int(2000)
      await database.failOver(() => pause(ms))
      return `${ms} ms with a synchronous standby`
    },
    async 'failover-async'() {
      const ms = 500 + random.int(2000)
      await database.failOverWithLoss(() => pause(ms), losses)
      return `${ms} ms without the standby`
    },
  }
}

/** Returns how many connections of the services were ended. */
const endSomeBackends = (url: string): Promise<number> =>
  withClient(url, async (client) => {
    const { rowCount } = await client.query(
      `select pg_terminate_backend(pid) from pg_stat_activity where usename ~ '_(identity|pki|policy|sessions)$' and random() < 0.5`,
    )
    return rowCount ?? 0
  })

function noProcess(): never {
  throw new Error('no process to choose from')
}

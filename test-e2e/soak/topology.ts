import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { type Layout, type Product, readLauncherSettings, startProduct } from '@overlay/launcher/product'
import { freePort, isHealthy, readinessOf, testBus } from '@overlay/launcher/testing'
import { type Clocks, openClocks } from './clocks.js'
import { type Database, startDatabase } from './database.js'
import { type Losses, openLosses } from './losses.js'
import { startProxy, type TcpProxy } from './tcp-proxy.js'

/** The product, with a proxy before its database and another before its bus. */
export interface Topology extends AsyncDisposable {
  readonly database: Database
  readonly losses: Losses
  readonly bus: TcpProxy
  readonly product: Product
  readonly clocks: Clocks
  /** The names of all processes that have a component: of each component, or of all components where they share processes. */
  readonly sameProcesses: ReadonlyMap<string, readonly string[]>
  /** Proportional set size of all processes of the product, in MiB. */
  memoryMiB(): Promise<number>
  /** Resolves with whether all processes report ready within the time. */
  recovered(ms: number): Promise<boolean>
}

const DISK_MIB = 4096

/** Only root can give Postgres a disk of its own. */
export const isRoot = process.getuid?.() === 0

export const administrator = { username: 'admin', password: 'correct horse' }

export async function startTopology(layout: Layout, print: (line: string) => void): Promise<Topology> {
  const started: AsyncDisposable[] = []
  const dispose = async (): Promise<void> => {
    for (const one of started.reverse()) await one[Symbol.asyncDispose]()
  }
  try {
    return { ...(await startAll(started, layout, print)), [Symbol.asyncDispose]: dispose }
  } catch (err) {
    await dispose()
    throw err
  }
}

/** @param started gets everything that must be stopped, in the order of its start */
async function startAll(
  started: AsyncDisposable[],
  layout: Layout,
  print: (line: string) => void,
): Promise<Omit<Topology, keyof AsyncDisposable>> {
  const use = <T extends AsyncDisposable>(one: T): T => {
    started.push(one)
    return one
  }
  const database = use(await startDatabase(isRoot ? DISK_MIB : undefined))
  const broker = use(await testBus())
  const bus = use(await startProxy(endOf(broker.url)))
  const home = await mkdtemp(join(tmpdir(), 'overlay-soak-'))
  use({ [Symbol.asyncDispose]: () => rm(home, { recursive: true }) })

  const settings = readLauncherSettings({
    OVERLAY_HOME: home,
    OVERLAY_ADDRESS: `localhost:${await freePort()}`,
    OVERLAY_CTRL_ADDRESS: `localhost:${await freePort()}`,
    OVERLAY_ADMIN_USERNAME: administrator.username,
    OVERLAY_ADMIN_PASSWORD: administrator.password,
    DATABASE_URL: through(database.primary().url, database.proxy),
    NATS_URL: through(broker.url, bus),
  })
  const clocks = openClocks()
  process.env.NODE_OPTIONS = clocks.nodeOptions
  const product = await startProduct(settings, layout, print)
  use({ [Symbol.asyncDispose]: () => product.stop() })
  const isWhole = 'replicas' in layout
  const ops = product.instances
    .filter(({ component }) => !isWhole || component === 'gateway')
    .map(({ ops }) => ops)
  const sameProcesses = new Map(
    isWhole
      ? [['all components', [...product.processes.keys()]]]
      : product.instances.map(({ component }) => [
          component,
          product.instances.filter((one) => one.component === component).map(({ name }) => name),
        ]),
  )
  return {
    database,
    losses: openLosses(),
    bus,
    product,
    clocks,
    sameProcesses,
    async memoryMiB() {
      const sizes = [...product.processes.values()].map(async ({ pid }) => {
        const rollup = await readFile(`/proc/${pid()}/smaps_rollup`, 'utf8')
        return Number(/^Pss: +(\d+) kB/m.exec(rollup)?.[1]) / 1024
      })
      return Math.round((await Promise.all(sizes)).reduce((sum, size) => sum + size, 0))
    },
    async recovered(ms) {
      const deadline = performance.now() + ms
      for (;;) {
        if ((await Promise.all(ops.map(readinessOf))).every(isHealthy)) return true
        if (performance.now() > deadline) return false
        await pause(50)
      }
    },
  }
}

const endOf = (url: string): { host: string; port: number } => {
  const { hostname, port } = new URL(url)
  return { host: hostname, port: Number(port) }
}

function through(url: string, { port }: TcpProxy): string {
  const proxied = new URL(url)
  proxied.hostname = '127.0.0.1'
  proxied.port = String(port)
  return proxied.href
}

import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Product, readLauncherSettings, startProduct } from '@overlay/launcher/product'
import { freePort, type TestBus, type TestDatabase, testBus, testDatabase } from '@overlay/launcher/testing'
import { services } from '@overlay/store/postgres/prepare-and-migrate'
import { type Admin, logInAsAdmin } from './admin.js'

export interface NetworkOptions {
  /** So many processes with all components, in place of one process for each component. */
  readonly replicas?: number
  readonly gateways?: number
  readonly identities?: number
  readonly pkis?: number
  readonly policies?: number
  readonly sessions?: number
  /** Of each process, below its folder: another build than that of `npm test`. */
  readonly entry?: string
  /** In place of one that has all schemas and no rows. It is dropped at the end. */
  readonly database?: TestDatabase
  /** Further settings of the launcher. */
  readonly env?: NodeJS.ProcessEnv
  /** The test makes calls between processes that are refused. */
  readonly refusesCalls?: boolean
  /**
   * Other files use the network before and after this one, which changes no process, no setting and nothing that it has
   * not created.
   */
  readonly shared?: boolean
}

/** A whole product on free ports with its own database and bus: real processes, real TLS. */
export interface Network extends AsyncDisposable {
  /** `host:port` for clients: the gateway, or the socket that several share. */
  readonly address: string
  /** `host:port` of each gateway. */
  readonly gateways: readonly string[]
  /** Of the control channel, as host:port. */
  readonly ctrlAddress: string
  /** `host:port` of each replica of sessions, for routers. */
  readonly controllers: readonly string[]
  readonly caPem: string
  /** The directory of its logs. */
  readonly home: string
  readonly bus: TestBus
  readonly databaseUrl: string
  readonly processes: Product['processes']
  /** Logs in an admin at the address. With several addresses, requests go to them in turn. */
  admin(...addresses: string[]): Promise<Admin>
  /** Stops the product, and keeps its files until the end. */
  stop(): Promise<void>
}

export const networkAdmin = { username: 'admin', password: 'correct horse' }

/** Of pods, and shared, where the run says so. */
export async function startNetwork(options: NetworkOptions = {}): Promise<Network> {
  if (!options.shared && !process.env.OVERLAY_TEST_MANIFESTS) return startNetworkOfProcesses(options)
  const { leaseNetwork } = await import('./leased-network.js')
  return leaseNetwork()
}

export async function startNetworkOfProcesses(options: NetworkOptions): Promise<Network> {
  const { gateways = 1, identities = 1, pkis = 1, policies = 1, sessions = 1, env = {}, entry } = options
  const database = options.database ?? (await testDatabase(...services))
  const [bus, port] = [await testBus(), await freePort()]
  const home = await mkdtemp(join(tmpdir(), 'overlay-test-'))
  const address = `localhost:${port}`
  const ctrlAddress = `localhost:${await freePort()}`
  const settings = readLauncherSettings({
    OVERLAY_HOME: home,
    OVERLAY_ADDRESS: address,
    OVERLAY_CTRL_ADDRESS: ctrlAddress,
    OVERLAY_ADMIN_USERNAME: networkAdmin.username,
    OVERLAY_ADMIN_PASSWORD: networkAdmin.password,
    DATABASE_URL: database.ownerUrl,
    NATS_URL: bus.url,
    ...env,
  })
  const separate = { gateway: gateways, identity: identities, pki: pkis, policy: policies, sessions }
  const { replicas } = options
  const layout = replicas === undefined ? { separate } : { replicas }
  const dispose = async (product?: Product): Promise<void> => {
    await product?.stop()
    await bus.stop()
    await database[Symbol.asyncDispose]()
    const refused = await refusedCalls(home)
    await rm(home, { recursive: true })
    // the product's own processes make no calls that others refuse: the table of methods lacks a row, or has a wrong one
    if (refused.length > 0 && !options.refusesCalls)
      throw new Error(`calls were refused: ${refused.join('\n')}`)
  }
  const product = await startProduct(settings, layout, () => undefined, entry).catch(async (err: unknown) => {
    await dispose()
    throw err
  })
  const { caPem, processes } = product
  return {
    address,
    gateways: product.gateways,
    ctrlAddress,
    controllers: product.controllers,
    caPem,
    home,
    stop: product.stop,
    bus,
    databaseUrl: database.ownerUrl,
    processes,
    admin: (...addresses) =>
      logInAsAdmin({ addresses: addresses.length > 0 ? addresses : [address], caPem }, networkAdmin),
    [Symbol.asyncDispose]: () => dispose(product),
  }
}

/** The lines of the logs of a home that report a refused call. */
export async function refusedCalls(home: string): Promise<readonly string[]> {
  const logs = (await readdir(home)).filter((name) => name.endsWith('.log'))
  const texts = await Promise.all(logs.map((name) => readFile(join(home, name), 'utf8')))
  return texts.flatMap((text) => text.split('\n').filter((line) => line.includes('"call refused"')))
}

export function missing(what: string): never {
  throw new Error(`this network has no ${what}`)
}

import { rm } from 'node:fs/promises'
import { splitAddress } from '@overlay/platform/process/settings'
import { accountsOf } from './account.js'
import { startBalancer } from './balancer.js'
import { type Home, openHome } from './home.js'
import { type Initialized, initialize } from './initialize.js'
import { type Kept, keepRunning } from './keep-running.js'
import { openLogFile } from './log-file.js'
import { startNode, untilReady } from './node-process.js'
import { isPrivileged, whyNotFree } from './ports.js'
import { type Instance, planInstances, type Scale } from './processes.js'
import { prepareAndMigrate, rolesIn, type Service } from './schemas.js'
import { type OwnServer, ownBus, ownPostgres } from './servers.js'
import { type LauncherSettings, logLimits } from './settings.js'
import { snapshotsDirectory } from './snapshots.js'

export { readLauncherSettings } from './settings.js'

export interface Product extends Initialized {
  /** By the name of the process: 'gateway', 'policy-2'. */
  readonly processes: ReadonlyMap<string, Kept>
  /** Where each of them listens, for clients and for health checks. */
  readonly instances: readonly Instance[]
  /** `host:port` of each gateway; with several, a balancer listens where clients look for them. */
  readonly gateways: readonly string[]
  stop(): Promise<void>
}

type Say = (line: string) => void

/** Who stops when. */
const stages = ['balancer', 'gateway', 'services', 'bus', 'postgres', 'home'] as const
type Stops = Record<(typeof stages)[number], (() => Promise<unknown>)[]>

/** Starts all that the product needs on this machine, and keeps it running. */
export async function startProduct(
  settings: LauncherSettings,
  scale: Scale,
  say: Say,
  entry = 'dist/main.js',
): Promise<Product> {
  const stops: Stops = { balancer: [], gateway: [], services: [], bus: [], postgres: [], home: [] }
  const stop = async (): Promise<void> => {
    for (const stage of stages) await Promise.all(stops[stage].splice(0).map((stop) => stop()))
  }
  try {
    return { ...(await start(settings, scale, say, entry, stops)), stop }
  } catch (err) {
    await stop()
    throw err
  }
}

async function start(
  settings: LauncherSettings,
  scale: Scale,
  say: Say,
  entry: string,
  stops: Stops,
): Promise<Omit<Product, 'stop'>> {
  const listen = splitAddress(settings.listen)
  const inTheWay = await whyNotFree(listen)
  if (inTheWay) throw new Error(`cannot listen at ${settings.listen} (${inTheWay}): set OVERLAY_ADDRESS`)
  const home = await openHome(settings.home, accountsOf(settings.uid))
  stops.home.push(home.release)

  const own = async (stage: 'postgres' | 'bus', starting: Promise<OwnServer>): Promise<string> => {
    const { url, about, stop } = await starting
    stops[stage].push(stop)
    say(about)
    return url
  }
  const [ownerUrl, natsUrl] = await all([
    settings.databaseUrl ?? own('postgres', ownPostgres(home, logLimits(settings), say)),
    settings.natsUrl ?? own('bus', ownBus(home, say)),
  ])

  const schemas = rolesIn(ownerUrl, home.secrets)
  await prepareAndMigrate(ownerUrl, Object.values(schemas))
  say('schemas and roles')
  const urlOf = (service: Service): string => {
    const url = new URL(ownerUrl)
    url.username = encodeURIComponent(schemas[service].role)
    url.password = encodeURIComponent(schemas[service].password)
    return url.href
  }
  const initialized = await initialize(settings, home, urlOf)
  await keepForOwner(home, initialized)
  say('keys, certificates, administrator')

  const { processes: account } = home.accounts
  // an account that is not root may not listen at low ports: the launcher does, and the gateway behind it
  const isBalanced = scale.gateway > 1 || (account.uid !== undefined && (await isPrivileged(listen)))
  const instances = await planInstances({
    settings,
    scale,
    secrets: home.secrets,
    natsUrl,
    sockets: home.run.rpc,
    snapshots: await snapshotsDirectory(settings, home, say),
    account,
    isBalanced,
    entry,
    urlOf,
  })
  const processes = await startProcesses(instances, settings, home, say, stops)
  const gateways = instances.filter(({ part }) => part === 'gateway').map(({ listen }) => listen)
  if (isBalanced) {
    const balancer = await startBalancer(listen, gateways.map(splitAddress))
    stops.balancer.push(async () => balancer[Symbol.asyncDispose]())
  }
  return { ...initialized, processes, instances, gateways }
}

/** At once: a password that is told at the end only would be lost when the start fails. */
async function keepForOwner(home: Home, { admin, caPem }: Initialized): Promise<void> {
  await home.write('ca.pem', caPem)
  if (admin.password !== undefined) await home.write('admin-password', `${admin.password}\n`)
  else if (admin.created) await rm(home.path('admin-password'), { force: true }) // of another database
}

/** All at once: each waits for what it needs. */
async function startProcesses(
  instances: readonly Instance[],
  settings: LauncherSettings,
  home: Home,
  say: Say,
  stops: Stops,
): Promise<Map<string, Kept>> {
  const processes = new Map<string, Kept>()
  const failed = new AbortController()
  const limits = logLimits(settings)
  const silenceMs = settings.silenceSeconds * 1000
  const startOne = async (instance: Instance): Promise<void> => {
    const { name, part } = instance
    const logFile = home.path(`${name}.log`)
    const start = () => startNode(instance, { log: () => openLogFile(logFile, limits, say), silenceMs })
    const first = await start()
    const keep = (kept: Kept): void => void processes.set(name, kept)
    keep({ pid: () => first.pid, stop: first.stop }) // whoever cannot even start is not started again
    stops[part === 'gateway' ? 'gateway' : 'services'].push(async () => processes.get(name)?.stop())
    const ended = first.ended.then((how) => {
      throw new Error(`${how} before it was ready: see ${logFile}`)
    })
    await Promise.race([untilReady(instance, failed.signal), ended])
    ended.catch(() => undefined)
    keep(keepRunning(first, start, say))
    say(`${name} is ready`)
  }
  await all(
    instances.map((instance) =>
      startOne(instance).catch((err: unknown) => {
        failed.abort(err)
        throw failed.signal.reason // of the first; the others only gave up
      }),
    ),
  )
  return processes
}

/** Like Promise.all, but when one fails the others have come to their end too, and can be stopped. */
async function all<const T extends readonly unknown[]>(
  promises: T,
): Promise<{ -readonly [K in keyof T]: Awaited<T[K]> }> {
  await Promise.allSettled(promises)
  return Promise.all(promises)
}

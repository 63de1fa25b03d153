import { setMaxListeners } from 'node:events'
import { rm } from 'node:fs/promises'
import { buildText } from '@overlay/process'
import { openBackoff } from '@overlay/process/async/backoff'
import { splitAddress } from '@overlay/process/settings'
import { tlsWarning } from '@overlay/store/postgres/migrate'
import { consoleDirectory } from '../home/file-access.js'
import { type Home, openHome } from '../home/home.js'
import { addressFile, caFile, launcherLog, passwordFile } from '../home/home-files.js'
import { openProcessCertificates, type ProcessCertificates } from '../home/process-certificates.js'
import { snapshotsDirectory } from '../home/snapshots.js'
import { keepStatus, type StatusKeeper } from '../home/status-record.js'
import { START_PAUSES } from '../limits.js'
import { type NodeProcess, startNode, untilReady } from '../processes/node-process.js'
import {
  components,
  consecutive,
  type Instance,
  inWholeProcesses,
  type Layout,
  type ProcessPlan,
  planInstances,
  scaleOf,
} from '../processes/plan-processes.js'
import { DEFAULT_METRICS_ADDRESS, serveMetrics } from '../processes/serve-metrics.js'
import { bindShared, type SharedSocket } from '../processes/shared-socket.js'
import {
  checkBus,
  databaseText,
  explainOwnDatabase,
  onDatabase,
  refuseNewDatabase,
  untilDatabase,
} from '../servers/external-servers.js'
import { type LaunchedServer, launchBus, launchPostgres } from '../servers/launch-servers.js'
import { prepareAndMigrate, rolesIn, roleUrl, type Service, whileOnlyStart } from '../servers/schemas.js'
import { type LauncherSettings, logLimits } from '../settings/settings.js'
import { accountsOf } from '../system/account.js'
import { openLogFile } from '../system/log-file.js'
import { type Address, isPrivileged, reservePorts } from '../system/ports.js'
import { requireFree } from '../system/require-free.js'
import { type Supervised, supervise } from '../system/supervise.js'
import { type InitialCredentials, initialize } from './initialize.js'
import { type Journal, openJournal } from './journal.js'
import { ignoredCredentials } from './welcome.js'

export { type Layout, scaleOf } from '../processes/plan-processes.js'
export { readLauncherSettings } from '../settings/settings.js'

export interface Product extends InitialCredentials {
  /** By the name of the process: 'gateway', 'policy-2'; 'overlay' and 'overlay-2' have all components. */
  readonly processes: ReadonlyMap<string, Supervised>
  /** The replicas of all components, with their addresses. */
  readonly instances: readonly Instance[]
  /** `host:port` of each gateway. Several gateways share another address. */
  readonly gateways: readonly string[]
  /** `host:port` for routers, of each replica of sessions. Several replicas share another address. */
  readonly controllers: readonly string[]
  /** `host:port` of health and metrics of all processes. */
  readonly metricsAddress: string
  stop(): Promise<void>
}

/** The caller of the commands and tools of this machine. */
const OPERATOR = 'operator'

type Print = (line: string) => void

/** The order of the stop. */
const stages = ['sockets', 'gateway', 'services', 'bus', 'postgres', 'home'] as const
type Stops = Record<(typeof stages)[number], (() => Promise<unknown>)[]>

/** Starts the product and its servers on this machine, and restarts processes that end. */
export async function startProduct(
  settings: LauncherSettings,
  layout: Layout,
  print: Print,
  entry = 'dist/main.js',
): Promise<Product> {
  const stops: Stops = { sockets: [], gateway: [], services: [], bus: [], postgres: [], home: [] }
  let journal: Journal | undefined
  const stop = async (): Promise<void> => {
    journal?.log.info('stopping')
    for (const stage of stages) {
      if (stage === 'home') {
        journal?.log.info('stopped')
        journal = undefined // closed with the home
      }
      await Promise.all(stops[stage].splice(0).map((stop) => stop()))
    }
  }
  try {
    const home = await openHome(settings.home, accountsOf(settings.uid))
    stops.home.push(home.release)
    journal = openJournal(home.path(launcherLog), settings, print)
    stops.home.push(journal.close)
    journal.step(`starting ${buildText}, Node ${process.versions.node}`)
    const product = await start(settings, layout, home, journal, entry, stops)
    journal.log.info({ address: settings.address }, 'ready')
    return { ...product, stop }
  } catch (err) {
    journal?.failed(err)
    await stop()
    throw err
  }
}

async function start(
  settings: LauncherSettings,
  layout: Layout,
  home: Home,
  journal: Journal,
  entry: string,
  stops: Stops,
): Promise<Omit<Product, 'stop'>> {
  const { step: print, warn } = journal
  const scale = 'separate' in layout ? layout.separate : scaleOf(layout.replicas)
  const listen = splitAddress(settings.listen)
  const ctrlListen = splitAddress(settings.ctrlListen)
  const { processes: account } = home.accounts
  const console = settings.console && (await consoleDirectory(settings.console, account))
  const { metricsAddress } = settings
  const { grpcHealthListen } = settings
  const processCount = components.reduce((count, component) => count + scale[component], 0)
  const healthListens = grpcHealthListen === undefined ? [] : consecutive(grpcHealthListen, processCount)
  await requireFree([
    { text: settings.listen, settings: ['OVERLAY_ADDRESS', 'OVERLAY_LISTEN'] },
    { text: settings.ctrlListen, settings: ['OVERLAY_CTRL_ADDRESS', 'OVERLAY_CTRL_LISTEN'] },
    ...(metricsAddress === undefined
      ? []
      : [{ text: metricsAddress, settings: ['OVERLAY_METRICS_ADDRESS'] }]),
    ...healthListens.map((text) => ({ text, settings: ['OVERLAY_GRPC_HEALTH_LISTEN'] })),
  ])
  reservePorts(healthListens.map((text) => splitAddress(text).port))
  await refuseNewDatabase(home.directory, settings.databaseUrl)
  await home.write(addressFile, `${settings.address}\n`)

  const certificates = await openProcessCertificates({ directory: home.run.tls, warn })
  stops.postgres.push(async () => certificates[Symbol.asyncDispose]()) // before the home is released
  await certificates.issue({ name: OPERATOR, hosts: [OPERATOR] })

  const launch = async (stage: 'postgres' | 'bus', starting: Promise<LaunchedServer>): Promise<string> => {
    const { url, description, stop } = await starting
    stops[stage].push(stop)
    print(description)
    return url
  }
  const { databaseUrl } = settings
  const unverified = databaseUrl && tlsWarning(databaseUrl)
  if (unverified) warn(`warning: ${unverified}`)
  if (settings.natsUrl !== undefined) await checkBus(settings.natsUrl, settings.natsTls, warn)
  const [ownerUrl, natsUrl] = await settleAll([
    databaseUrl ?? launch('postgres', launchPostgres(home, logLimits(settings), warn)),
    settings.natsUrl ?? launch('bus', launchBus(certificates)),
  ])

  const schemas = Object.values(rolesIn(ownerUrl, home.secrets))
  const urlOf = (service: Service): string => roleUrl(ownerUrl, service, home.secrets)
  const prepare = async (): Promise<InitialCredentials> => {
    await prepareAndMigrate(ownerUrl, schemas, warn, home.secrets.keySecrets.pki)
    print('schemas and roles')
    const credentials = await initialize(settings, home, urlOf, journal.log)
    await writeCredentials(home, credentials)
    return credentials
  }
  const prepareAlone = () => whileOnlyStart(ownerUrl, warn, prepare)
  const credentials = await untilDatabase(warn, () =>
    databaseUrl === undefined
      ? explainOwnDatabase(prepareAlone)
      : onDatabase(databaseUrl, home, prepareAlone),
  )
  print('keys, certificates, administrator')
  for (const line of ignoredCredentials(settings, credentials.admin)) warn(line)

  // several processes cannot bind to one address, nor other accounts than root to low ports
  const needsRoot = async (address: Address): Promise<boolean> =>
    account.uid !== undefined && isPrivileged(address)
  const share = async (address: Address, count: number): Promise<SharedSocket | undefined> => {
    if (count === 1 && !(await needsRoot(address))) return undefined
    const socket = await bindShared(address)
    stops.sockets.push(async () => socket.close())
    return socket
  }
  const socket = await share(listen, scale.gateway)
  const ctrlSocket = await share(ctrlListen, scale.sessions)
  const snapshots = await snapshotsDirectory(settings, home, print)
  const instances = await planInstances({
    settings,
    scale,
    secrets: home.secrets,
    natsUrl,
    sockets: home.run.rpc,
    snapshots,
    account,
    console,
    socket,
    ctrlSocket,
    entry,
    certificateOf: (name, component) => certificates.issue({ name, hosts: [component], account }),
    urlOf,
  })
  const { address, ctrlAddress } = settings
  const place = { address, ctrlAddress, database: databaseText(settings.databaseUrl), snapshots }
  const planned = 'separate' in layout ? instances : inWholeProcesses(instances, layout.replicas)
  const status = keepStatus(home, place, planned, warn)
  stops.postgres.push(status.stopped) // before the home is released
  const processes = await startProcesses(planned, settings, home, certificates, journal, stops, status)
  const gateways = instances.filter(({ component }) => component === 'gateway').map(({ listen }) => listen)
  const controllers = instances.flatMap(({ ctrlListen }) => ctrlListen ?? [])
  print(`control channel for routers at ${settings.ctrlAddress}`)
  const metrics = await serveMetrics({ address: metricsAddress, processes: status.processes, print: warn })
  stops.sockets.push(async () => metrics[Symbol.asyncDispose]())
  status.serves(metrics.address)
  print(metricsText(metrics.address, metricsAddress))
  return { ...credentials, processes, instances, gateways, controllers, metricsAddress: metrics.address }
}

function metricsText(actual: string, configured: string | undefined): string {
  const text = `metrics of all processes at http://${actual}/metrics`
  if (actual === (configured ?? DEFAULT_METRICS_ADDRESS)) return text
  return `${text}, because ${DEFAULT_METRICS_ADDRESS} is taken: set OVERLAY_METRICS_ADDRESS for a fixed address`
}

async function writeCredentials(home: Home, { admin, caPem }: InitialCredentials): Promise<void> {
  await home.write(caFile, caPem)
  if (admin.created && admin.password === undefined) await rm(home.path(passwordFile), { force: true }) // it is the password of another database
}

/** Starts all processes at the same time. Each waits for its dependencies. */
async function startProcesses(
  planned: readonly ProcessPlan[],
  settings: LauncherSettings,
  home: Home,
  certificates: ProcessCertificates,
  { step, warn }: Journal,
  stops: Stops,
  status: StatusKeeper,
): Promise<Map<string, Supervised>> {
  const processes = new Map<string, Supervised>()
  const failed = new AbortController()
  setMaxListeners(0, failed.signal) // one for each process that starts
  const limits = logLimits(settings)
  const silenceMs = settings.silenceSeconds * 1000
  const startOne = async (plan: ProcessPlan): Promise<void> => {
    const { name, stage } = plan
    const logFile = home.path(`${name}.log`)
    const start = async () => {
      await certificates.renew() // after a suspension of the machine, they may have expired
      const running = await startNode(plan, { log: () => openLogFile(logFile, limits, warn), silenceMs })
      status.started(name, running.pid)
      return running
    }
    const backoff = openBackoff(START_PAUSES)
    let running = await start()
    processes.set(name, { pid: () => running.pid, stop: () => running.stop() })
    stops[stage].push(async () => processes.get(name)?.stop())
    for (;;) {
      const end = await untilReadyOrEnded(plan, running, failed.signal, warn)
      if (end === undefined) break
      const text = `${end} before it was ready: ${running.fatalReason() ?? 'no reason is logged'}`
      if (!running.endedTransiently()) throw new Error(`${text} (${logFile})`)
      warn(`${text}; starting it again`)
      await backoff.pause(failed.signal)
      failed.signal.throwIfAborted()
      running = await start()
    }
    processes.set(name, supervise(running, start, warn))
    step(`${name} is ready`)
  }
  await settleAll(
    planned.map((plan) =>
      startOne(plan).catch((err: unknown) => {
        failed.abort(err)
        throw failed.signal.reason // the first failure; it ends the other starts
      }),
    ),
  )
  return processes
}

/** Waits for a process. Resolves with the reason if it ends before it is ready. */
async function untilReadyOrEnded(
  plan: ProcessPlan,
  { ended }: NodeProcess,
  signal: AbortSignal,
  print: (line: string) => void,
): Promise<string | undefined> {
  const over = new AbortController()
  try {
    const ready = untilReady(plan, { signal: AbortSignal.any([signal, over.signal]), print })
    return await Promise.race([ready.then(() => undefined), ended])
  } finally {
    over.abort()
  }
}

/** Like Promise.all, but waits for all promises even if one fails, so that everything can be stopped. */
async function settleAll<const T extends readonly unknown[]>(
  promises: T,
): Promise<{ -readonly [K in keyof T]: Awaited<T[K]> }> {
  await Promise.allSettled(promises)
  return Promise.all(promises)
}

import type { Check } from '@overlay/maintenance'
import { maintenanceService } from '@overlay/maintenance'
import type { Service } from '@overlay/model'
import type { Health, serviceSettings, Values } from '@overlay/process'
import { describeProcess, isStopping, observeCall, openLog } from '@overlay/process'
import type { ComponentProcess } from '@overlay/process/component'
import { grpcHealth, serveGrpcHealth } from '@overlay/process/grpc-health'
import { noteRefused, noteUnavailable, openPeers, openTls } from '@overlay/process/tls'
import {
  type AuditServiceService,
  ChangeServiceService,
  EntityServiceService,
  type HostedService,
  host,
  type MaintenanceServiceService,
  type Methods,
  type Peers,
  reflection,
  remote,
  StatusServiceService,
  serve,
} from '@overlay/rpc'
import { auditService } from '@overlay/store/audit'
import {
  type Bus,
  type ChangeLog,
  openBus,
  openChangeLog,
  remoteSource,
  type Source,
  startPruningAudit,
  startPruningChanges,
  type WaitForFollowers,
  waitForFollowers,
} from '@overlay/store/change-log'
import {
  type Database,
  migrationFolders,
  migrationsIn,
  openDatabase,
  startCompactingCounts,
  tlsWarning,
  untilMigrated,
  withTlsDirectory,
} from '@overlay/store/postgres'
import type { Logger } from 'pino'

/** Another service, and the operations that all services have. */
export interface RemoteService extends AsyncDisposable {
  readonly peers: Peers
  readonly entities: Methods<EntityServiceService>
  readonly changes: Methods<ChangeServiceService>
  readonly source: Source
}

/** The common parts of all services. */
export interface ServiceDeps {
  readonly log: Logger
  readonly bus: Bus
  readonly db: Database
  /** For connections of its own. */
  readonly databaseUrl: string
  readonly changeLog: ChangeLog
  connect(schema: Service, addresses: string): RemoteService
  /** Waits, after a commit, until the connected services have applied it. */
  readonly waitForFollowers: WaitForFollowers
  /** Answers for the audit of the schema. */
  readonly audit: Methods<AuditServiceService>
  /** The part of the service in the jobs that concern all schemas. */
  maintenance(checks: readonly Check[]): Methods<MaintenanceServiceService>
  /** Serves until the process is stopped. */
  serve(hosted: readonly HostedService[], health: () => Promise<Health>): Promise<void>
}

interface ServiceOptions {
  readonly schema: Service
  readonly process: ComponentProcess
  readonly settings: Values<typeof serviceSettings>
  /** The folder of the service's own migrations. */
  readonly migrations: string
  /** The schemas whose heads the service reads. */
  readonly heads?: readonly Service[]
}

/** Runs a service until it is stopped. `work` closes what it opens; its deps are closed afterwards. */
export async function runService(
  { schema, process, settings, migrations, heads = [] }: ServiceOptions,
  work: (deps: ServiceDeps) => Promise<void>,
): Promise<void> {
  const { opsListen, grpcHealthListen, rpcListen } = settings
  const databaseUrl = withTlsDirectory(settings.databaseUrl, settings.databaseTls)
  const log = openLog(schema, { level: settings.logLevel, format: settings.logFormat })
  await using _tracing = await process.begin({ name: `overlay-${schema}`, settings, log })
  const defined = await migrationsIn(migrationFolders(migrations))
  await process.dropRights()
  using tls = await openTls(settings.tls, schema, log)
  const warning = tlsWarning(databaseUrl)
  if (warning !== undefined) log.warn({ warning }, 'database not verified')
  await untilMigrated(databaseUrl, schema, defined, { log, heads })
  const open = () => openBus(settings.natsUrl, log, { tls: settings.natsTls })
  await using bus = await process.share(`bus at ${settings.natsUrl}`, open)
  await using db = openDatabase(databaseUrl, schema, { log })
  await using changeLog = await openChangeLog(db, bus, log)
  await using _changes = startPruningChanges(db, log)
  await using _audit = startPruningAudit(db, settings.auditDays, log)
  await using _counts = startCompactingCounts(db, log)
  const connected: RemoteService[] = []
  const connect: ServiceDeps['connect'] = (schema, addresses) => {
    const service = remoteService(
      schema,
      openPeers(addresses, { tls, service: schema, log, local: process.local }),
    )
    connected.push(service)
    return service
  }
  await work({
    log,
    bus,
    db,
    databaseUrl,
    changeLog,
    audit: auditService(db),
    maintenance: (checks) =>
      maintenanceService({ schema, databaseUrl, snapshots: settings.snapshots, checks }),
    connect,
    waitForFollowers: waitForFollowers(changeLog, connected),
    async serve(hosted, health) {
      const current = (): Promise<Health> | Health => (isStopping() ? stopping : health())
      const probes = grpcHealth(schema, current, log)
      await using _ops = await process.serveOps(schema, opsListen, { log, health: current })
      await using _health = await serveGrpcHealth(grpcHealthListen, probes, log)
      const components = { schema, bus, hasRouters: schema === 'sessions' }
      const status = host(StatusServiceService, { describe: () => describeProcess(components) })
      await using _server = await serve(
        rpcListen,
        {
          log,
          tls,
          observe: observeCall,
          refused: noteRefused(log),
          unavailable: noteUnavailable(log),
          local: process.local,
        },
        [...hosted, status, probes.service, reflection],
      )
      log.info({ listen: rpcListen }, 'ready')
      await process.untilStopped(schema)
      probes.stop()
    },
  })
}

const stopping: Health = { ready: false, checks: { process: 'stopping' } }

function remoteService(schema: Service, peers: Peers): RemoteService {
  const changes = remote(ChangeServiceService, peers)
  return {
    peers,
    entities: remote(EntityServiceService, peers),
    changes,
    source: remoteSource(schema, changes),
    [Symbol.asyncDispose]: () => peers[Symbol.asyncDispose](),
  }
}

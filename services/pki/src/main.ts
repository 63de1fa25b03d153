import {
  guardProcess,
  healthOf,
  observeCall,
  openBus,
  openDatabase,
  openHistory,
  openLog,
  readSettings,
  remoteSource,
  serveOps,
  untilMigrated,
  untilStopped,
} from '@overlay/platform'
import {
  ChangeServiceService,
  connectPeers,
  EntityServiceService,
  host,
  IdentityServiceService,
  PkiServiceService,
  remote,
  SessionsServiceService,
  serve,
} from '@overlay/rpc'
import { openService } from './service.js'
import { pkiSettings } from './settings.js'

const settings = readSettings(pkiSettings, process.env)
const log = openLog('pki', { level: settings.logLevel, format: settings.logFormat })
guardProcess(log)
await untilMigrated(settings.databaseUrl, 'pki', `${import.meta.dirname}/../migrations`, { log })

const secret = { secret: settings.peerSecret }
await using bus = await openBus(settings.natsUrl, log)
await using db = openDatabase(settings.databaseUrl, 'pki')
await using history = await openHistory(db, bus, log)
await using identityPeers = connectPeers(settings.identityPeers, secret)
await using sessionsPeers = connectPeers(settings.sessionsPeers, secret)
await using service = await openService({
  ...settings,
  history,
  bus,
  log,
  owners: {
    identity: remote(IdentityServiceService, identityPeers),
    sessions: remote(SessionsServiceService, sessionsPeers),
  },
  viewers: {
    identity: remote(EntityServiceService, identityPeers),
    sessions: remote(EntityServiceService, sessionsPeers),
  },
  sources: {
    identity: remoteSource('identity', remote(ChangeServiceService, identityPeers)),
    sessions: remoteSource('sessions', remote(ChangeServiceService, sessionsPeers)),
  },
})
await using _ops = await serveOps(settings.opsListen, { log, health: healthOf(history, bus) })
await using _server = await serve(
  settings.rpcListen,
  { log, secret: settings.peerSecret, observe: observeCall },
  [
    host(EntityServiceService, service.entities),
    host(ChangeServiceService, service.changes),
    host(PkiServiceService, service.pki),
  ],
)
log.info({ listen: settings.rpcListen }, 'ready')
await untilStopped()

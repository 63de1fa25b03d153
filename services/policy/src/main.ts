import {
  guardProcess,
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
  PolicyServiceService,
  remote,
  SessionsServiceService,
  serve,
} from '@overlay/rpc'
import { openService } from './service.js'
import { policySettings } from './settings.js'

const settings = readSettings(policySettings, process.env)
const { databaseUrl, peerSecret: secret } = settings
const log = openLog('policy', { level: settings.logLevel, format: settings.logFormat })
guardProcess(log)
await untilMigrated(databaseUrl, 'policy', `${import.meta.dirname}/../migrations`, { log })

await using bus = await openBus(settings.natsUrl, log)
await using db = openDatabase(databaseUrl, 'policy')
await using history = await openHistory(db, bus, log)
await using identityPeers = connectPeers(settings.identityPeers, { secret })
await using sessionsPeers = connectPeers(settings.sessionsPeers, { secret })

await using service = await openService({
  history,
  databaseUrl,
  bus,
  log,
  sources: {
    identity: remoteSource('identity', remote(ChangeServiceService, identityPeers)),
    sessions: remoteSource('sessions', remote(ChangeServiceService, sessionsPeers)),
  },
  viewers: {
    identity: remote(EntityServiceService, identityPeers),
    sessions: remote(EntityServiceService, sessionsPeers),
  },
  routers: remote(SessionsServiceService, sessionsPeers),
})
await using _ops = await serveOps(settings.opsListen, {
  log,
  health: async () => {
    await history.head()
    const followed = service.engine.trusted()
      ? 'ok'
      : 'changes of this schema or of identity are not heard of'
    return { ready: true, checks: { database: 'ok', followed } }
  },
})
await using _server = await serve(settings.rpcListen, { log, secret, observe: observeCall }, [
  host(EntityServiceService, service.entities),
  host(ChangeServiceService, service.changes),
  host(PolicyServiceService, service.policy),
])
log.info({ listen: settings.rpcListen }, 'ready')

await untilStopped()

import { apiSession, authenticator, authPolicy, identity } from '@overlay/model'
import {
  changeService,
  follow,
  guardProcess,
  healthOf,
  loadersOf,
  observeCall,
  openBus,
  openDatabase,
  openHistory,
  openLog,
  openProjection,
  readSettings,
  remoteSource,
  serveOps,
  settling,
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
  serve,
} from '@overlay/rpc'
import { startEndingIdleSessions } from './events/idle-sessions.js'
import { routerEffects } from './events/routers.js'
import { configTypeNames, configTypes } from './rpc/config-types.js'
import { entities } from './rpc/entities.js'
import { openHashing } from './rpc/hashing.js'
import { identityService } from './rpc/identity-service.js'
import { openTrust } from './rpc/trust.js'
import { identitySettings } from './settings.js'

const trustAgeMs = 10_000

const settings = readSettings(identitySettings, process.env)
const log = openLog('identity', { level: settings.logLevel, format: settings.logFormat })
guardProcess(log)
await untilMigrated(settings.databaseUrl, 'identity', `${import.meta.dirname}/../migrations`, { log })

const secret = { secret: settings.peerSecret }
await using bus = await openBus(settings.natsUrl, log)
await using db = openDatabase(settings.databaseUrl, 'identity')
await using history = await openHistory(db, bus, log)
await using pkiPeers = connectPeers(settings.pkiPeers, secret)
await using policyPeers = connectPeers(settings.policyPeers, secret)
await using sessionsPeers = connectPeers(settings.sessionsPeers, secret)

const pki = {
  ...remote(PkiServiceService, pkiPeers),
  reach: remote(ChangeServiceService, pkiPeers).reach,
}
const hashing = openHashing({
  memoryKib: settings.hashMemoryKib,
  passes: settings.hashPasses,
  lanes: settings.hashLanes,
  running: settings.hashesRunning,
  waiting: settings.hashesWaiting,
})
const trust = openTrust(pki, trustAgeMs)
const names = configTypeNames()
// not waited for: policy follows us, and each serves before it has loaded the other
await using projection = await openProjection(
  remoteSource('policy', remote(ChangeServiceService, policyPeers)),
  { kinds: ['config-types'], ...names },
  { bus, log, loaded: 'background' },
)
const own = entities({
  history,
  hashing,
  trust,
  pki,
  services: remote(EntityServiceService, policyPeers),
  settled: settling(
    'identity',
    [pkiPeers, policyPeers, sessionsPeers].map((peers) => remote(ChangeServiceService, peers)),
  ),
  others: {
    pki: remote(EntityServiceService, pkiPeers),
    sessions: remote(EntityServiceService, sessionsPeers),
  },
})
const timeoutSeconds = settings.sessionMinutes * 60
await using _ops = await serveOps(settings.opsListen, { log, health: healthOf(history, bus, [projection]) })
await using routersFollowed = follow(
  history,
  remoteSource('sessions', remote(ChangeServiceService, sessionsPeers)),
  routerEffects,
  log,
)
await using _idle = startEndingIdleSessions(history, timeoutSeconds * 1000, log)
await using _server = await serve(
  settings.rpcListen,
  { log, secret: settings.peerSecret, observe: observeCall },
  [
    host(EntityServiceService, own),
    host(
      ChangeServiceService,
      changeService(history, loadersOf(db, [identity, authenticator, authPolicy, apiSession]), {
        sessions: routersFollowed,
      }),
    ),
    host(
      IdentityServiceService,
      identityService({
        history,
        hashing,
        trust,
        pki,
        configTypes: configTypes(names, projection),
        entities: own,
        timeoutSeconds,
      }),
    ),
  ],
)
log.info({ listen: settings.rpcListen }, 'ready')

await untilStopped()

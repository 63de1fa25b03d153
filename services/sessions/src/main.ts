import { controller, edgeRouter, session, terminator, transitRouter } from '@overlay/model'
import {
  changeService,
  entityService,
  follow,
  guardProcess,
  healthOf,
  kind,
  loadersOf,
  namesFrom,
  observeCall,
  openBus,
  openDatabase,
  openHistory,
  openLog,
  positionFollowed,
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
  PolicyServiceService,
  remote,
  SessionsServiceService,
  serve,
} from '@overlay/rpc'
import sql from 'sql-template-tag'
import { identityEffects } from './events/identity.js'
import { policyEffects } from './events/policy.js'
import { sessionCreator } from './rpc/create-session.js'
import { entities } from './rpc/entities.js'
import { sessionsService } from './rpc/sessions-service.js'
import { sessionsSettings } from './settings.js'
import { edgeRouterSeams } from './store/edge-router.js'
import { sessionSeams } from './store/session.js'
import { sessionMaker } from './store/session-row.js'
import { terminatorSeams } from './store/terminator.js'
import { transitRouterSeams } from './store/transit-router.js'

const settings = readSettings(sessionsSettings, process.env)
const log = openLog('sessions', { level: settings.logLevel, format: settings.logFormat })
guardProcess(log)
await untilMigrated(settings.databaseUrl, 'sessions', `${import.meta.dirname}/../migrations`, { log })

const secret = { secret: settings.peerSecret }
await using bus = await openBus(settings.natsUrl, log)
await using db = openDatabase(settings.databaseUrl, 'sessions')
await using history = await openHistory(db, bus, log)
await using identityPeers = connectPeers(settings.identityPeers, secret)
await using pkiPeers = connectPeers(settings.pkiPeers, secret)
await using policyPeers = connectPeers(settings.policyPeers, secret)

const identity = remote(IdentityServiceService, identityPeers)
const policy = remote(PolicyServiceService, policyPeers)
const owners = {
  identity: remote(EntityServiceService, identityPeers),
  policy: remote(EntityServiceService, policyPeers),
  pki: remote(EntityServiceService, pkiPeers),
}
const names = namesFrom(owners)

await using identityFollowed = follow(
  history,
  remoteSource('identity', remote(ChangeServiceService, identityPeers)),
  identityEffects(policy),
  log,
)
await using policyFollowed = follow(
  history,
  remoteSource('policy', remote(ChangeServiceService, policyPeers)),
  policyEffects(policy, names),
  log,
)
await using _ops = await serveOps(settings.opsListen, { log, health: healthOf(history, bus) })

const kinds = [
  kind(controller),
  kind(edgeRouter, edgeRouterSeams(owners.pki)),
  kind(session, sessionSeams(policy, names)),
  kind(terminator, terminatorSeams(names)),
  kind(transitRouter, transitRouterSeams(owners.pki)),
]
const loaders = loadersOf(db, [edgeRouter, session, transitRouter], {
  [edgeRouter.kind]: sql`is_edge`,
  [transitRouter.kind]: sql`not is_edge`,
})
const uniform = entityService(history, kinds, names)
const create = sessionCreator({
  db,
  make: sessionMaker(db),
  policy,
  identity,
  followed: (schema) => positionFollowed(db, schema),
})
const settled = settling(
  'sessions',
  [identityPeers, pkiPeers, policyPeers].map((peers) => remote(ChangeServiceService, peers)),
)
await using _server = await serve(
  settings.rpcListen,
  { log, secret: settings.peerSecret, observe: observeCall },
  [
    host(EntityServiceService, entities(uniform, { db, policyFollowed, settled })),
    host(
      ChangeServiceService,
      changeService(history, loaders, {
        identity: identityFollowed,
        policy: policyFollowed,
      }),
    ),
    host(SessionsServiceService, sessionsService({ history, create, settled })),
  ],
)
log.info({ listen: settings.rpcListen }, 'ready')

await untilStopped()

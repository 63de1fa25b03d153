import { controller, edgeRouter, session, terminator, transitRouter } from '@overlay/model'
import {
  changeService,
  consumedPosition,
  recordingDeletions,
  startConsumer,
  waitForFollowers,
} from '@overlay/platform/change-log'
import { entityService, kind, loadersOf, namesFrom } from '@overlay/platform/kind-store'
import { readSettings } from '@overlay/platform/process'
import { healthOf, runService } from '@overlay/platform/service'
import {
  ChangeServiceService,
  EntityServiceService,
  host,
  IdentityServiceService,
  MaintenanceServiceService,
  PolicyServiceService,
  remote,
  SessionsServiceService,
} from '@overlay/rpc'
import sql from 'sql-template-tag'
import { checksOf } from './events/checks.js'
import { identityEffects } from './events/identity.js'
import { policyEffects } from './events/policy.js'
import { headsOf } from './events/standing.js'
import { startSweeping, withSweep } from './events/sweep.js'
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
const migrations = `${import.meta.dirname}/../migrations`
await runService({ schema: 'sessions', settings, migrations }, async (grounds) => {
  const { bus, connect, db, changeLog, log, serve } = grounds
  await using identity = connect('identity', settings.identityPeers)
  await using pki = connect('pki', settings.pkiPeers)
  await using policy = connect('policy', settings.policyPeers)

  const access = remote(PolicyServiceService, policy.peers)
  const names = namesFrom({ identity: identity.entities, policy: policy.entities, pki: pki.entities })
  const heads = headsOf({ identity: identity.changes, policy: policy.changes })
  await using sweeping = startSweeping({ changeLog, policy: access, names, heads, log })
  await using identityFollowed = startConsumer(changeLog, identity.source, identityEffects(sweeping), log)
  await using policyFollowed = startConsumer(
    changeLog,
    policy.source,
    recordingDeletions('policy', ['services'], policyEffects(sweeping, names)),
    log,
  )

  const kinds = [
    kind(controller),
    kind(edgeRouter, edgeRouterSeams(pki.entities)),
    kind(session, sessionSeams(access, names)),
    kind(terminator, terminatorSeams),
    kind(transitRouter, transitRouterSeams(pki.entities)),
  ]
  const loaders = loadersOf(db, [edgeRouter, transitRouter], {
    [edgeRouter.kind]: sql`is_edge`,
    [transitRouter.kind]: sql`not is_edge`,
  })
  const uniform = entityService(changeLog, kinds, names)
  const create = sessionCreator({
    db,
    make: sessionMaker(db),
    policy: access,
    identity: remote(IdentityServiceService, identity.peers),
    followed: (schema) => consumedPosition(db, schema),
  })
  const settled = waitForFollowers(changeLog, [identity.changes, pki.changes, policy.changes])
  const followed = {
    identity: withSweep('identity', identityFollowed, sweeping),
    policy: withSweep('policy', policyFollowed, sweeping),
  }
  const checks = checksOf({
    changeLog,
    names,
    policy: access,
    heads,
    sources: { policy: policy.source },
    followed,
    log,
  })
  const hosted = [
    host(EntityServiceService, entities(uniform, { db, policyFollowed, settled })),
    host(ChangeServiceService, changeService(changeLog, loaders, followed)),
    host(MaintenanceServiceService, grounds.maintenance(checks)),
    host(SessionsServiceService, sessionsService({ changeLog, create, settled })),
  ]
  await serve(hosted, healthOf(changeLog, bus))
})

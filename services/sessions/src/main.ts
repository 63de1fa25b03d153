import { controller, edgeRouter, session, terminator, transitRouter } from '@overlay/model'
import {
  changeService,
  consumedPosition,
  recordingDeletions,
  startConsumer,
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
import { checksOf } from './consumers/checks.js'
import { identityEffects } from './consumers/identity.js'
import { policyEffects } from './consumers/policy.js'
import { edgeRouterSeams } from './kinds/edge-router.js'
import { entities } from './kinds/entities.js'
import { sessionSeams } from './kinds/session.js'
import { terminatorSeams } from './kinds/terminator.js'
import { transitRouterSeams } from './kinds/transit-router.js'
import { sessionCreator } from './methods/create-session.js'
import { sessionsService } from './methods/sessions-service.js'
import { sessionsSettings } from './settings.js'
import { sessionMaker } from './store/create-session.js'
import { headsOf } from './sweep/access.js'
import { startSweeping, withSweep } from './sweep/sweep.js'

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
    kind(edgeRouter, edgeRouterSeams(pki.entities), { followedRows: sql`is_edge` }),
    kind(session, sessionSeams(access, names)),
    kind(terminator, terminatorSeams),
    kind(transitRouter, transitRouterSeams(pki.entities), { followedRows: sql`not is_edge` }),
  ]
  const loaders = loadersOf(db, kinds)
  const uniform = entityService({ changeLog, kinds, names })
  const create = sessionCreator({
    db,
    make: sessionMaker(db),
    policy: access,
    identity: remote(IdentityServiceService, identity.peers),
    followed: (schema) => consumedPosition(db, schema),
  })
  const { waitForFollowers: settled } = grounds
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

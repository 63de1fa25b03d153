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
import { openService } from './service.js'
import { sessionsSettings } from './settings.js'

const settings = readSettings(sessionsSettings, process.env)
const migrations = `${import.meta.dirname}/../migrations`
await runService({ schema: 'sessions', settings, migrations }, async (deps) => {
  const { bus, changeLog, connect, log, maintenance, serve, waitForFollowers } = deps
  await using identity = connect('identity', settings.identityPeers)
  await using pki = connect('pki', settings.pkiPeers)
  await using policy = connect('policy', settings.policyPeers)
  await using service = openService({
    changeLog,
    log,
    identity: { ...identity, calls: remote(IdentityServiceService, identity.peers) },
    policy: { ...policy, calls: remote(PolicyServiceService, policy.peers) },
    pki,
    waitForFollowers,
  })
  const hosted = [
    host(EntityServiceService, service.entities),
    host(ChangeServiceService, service.changes),
    host(MaintenanceServiceService, maintenance(service.checks)),
    host(SessionsServiceService, service.sessions),
  ]
  await serve(hosted, healthOf(changeLog, bus))
})

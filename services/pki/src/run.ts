import { readSettings } from '@overlay/process'
import type { ComponentProcess } from '@overlay/process/component'
import {
  AuditServiceService,
  ChangeServiceService,
  EntityServiceService,
  host,
  IdentityServiceService,
  MaintenanceServiceService,
  PkiServiceService,
  remote,
  SessionsServiceService,
} from '@overlay/rpc'
import { healthOf, runService } from '@overlay/service'
import { openService } from './service.js'
import { pkiSettings, tokenKeyRulesOf } from './settings.js'

/** Runs pki until it is stopped. Its migrations are in the folder `migrations`. */
export async function runPki(
  env: NodeJS.ProcessEnv,
  migrations: string,
  process: ComponentProcess,
): Promise<void> {
  const settings = readSettings(pkiSettings, env)
  await runService({ schema: 'pki', process, settings, migrations }, async (deps) => {
    const { audit, bus, connect, changeLog, log, maintenance, serve, waitForFollowers } = deps
    await using identity = connect('identity', settings.identityPeers)
    await using sessions = connect('sessions', settings.sessionsPeers)
    const owner = remote(IdentityServiceService, identity.peers)
    await using service = await openService({
      ...settings,
      tokenKeyRules: tokenKeyRulesOf(settings),
      changeLog,
      log,
      waitForFollowers,
      owners: {
        identity: owner,
        sessions: remote(SessionsServiceService, sessions.peers),
      },
      expectEnrollment: owner.expectEnrollment,
      viewers: { identity: identity.entities, sessions: sessions.entities },
      sources: { identity: identity.source, sessions: sessions.source },
    })
    const hosted = [
      host(EntityServiceService, service.entities),
      host(ChangeServiceService, service.changes),
      host(AuditServiceService, audit),
      host(PkiServiceService, service.pki),
      host(MaintenanceServiceService, maintenance(service.checks)),
    ]
    await serve(hosted, healthOf(changeLog, bus))
  })
}

import { readSettings } from '@overlay/process'
import type { ComponentProcess } from '@overlay/process/component'
import {
  AuditServiceService,
  ChangeServiceService,
  EntityServiceService,
  host,
  IdentityServiceService,
  MaintenanceServiceService,
  OidcServiceService,
  PkiServiceService,
  remote,
} from '@overlay/rpc'
import { healthOf, runService } from '@overlay/service'
import { announcing, fabricEvents } from '@overlay/store/change-log'
import { startHousekeeping } from './jobs/housekeeping.js'
import { emitEnded } from './login/session-message.js'
import { openService } from './service.js'
import {
  hashSettingsOf,
  identitySettings,
  lifetimesOf,
  tokenLifetimesOf,
  tokenSettingsOf,
} from './settings.js'

/** Runs identity until it is stopped. Its migrations are in the folder `migrations`. */
export async function runIdentity(
  env: NodeJS.ProcessEnv,
  migrations: string,
  process: ComponentProcess,
): Promise<void> {
  const settings = readSettings(identitySettings, env)
  const lifetimes = lifetimesOf(settings)
  await runService(
    { schema: 'identity', process, settings, migrations, heads: ['policy'] },
    async ({
      bus,
      changeLog: ownChangeLog,
      connect,
      databaseUrl,
      log,
      audit,
      maintenance,
      serve,
      waitForFollowers,
    }) => {
      const events = fabricEvents(bus)
      const changeLog = announcing(ownChangeLog, (changes) => emitEnded(events, changes))
      await using pki = connect('pki', settings.pkiPeers)
      await using policy = connect('policy', settings.policyPeers)
      await using sessions = connect('sessions', settings.sessionsPeers)
      await using service = openService({
        ...settings,
        databaseUrl,
        changeLog,
        bus,
        events,
        log,
        hashing: hashSettingsOf(settings),
        lifetimes,
        tokenLifetimes: tokenLifetimesOf(settings),
        tokens: tokenSettingsOf(settings),
        snapshotLimitMs: settings.snapshotMinutes * 60_000,
        snapshotMaxBytes: settings.snapshotMaxMib * 1024 * 1024,
        sources: { pki: pki.source, policy: policy.source, sessions: sessions.source },
        viewers: { pki: pki.entities, policy: policy.entities, sessions: sessions.entities },
        pki: remote(PkiServiceService, pki.peers),
        maintenance,
        maintenanceOf: {
          pki: remote(MaintenanceServiceService, pki.peers),
          policy: remote(MaintenanceServiceService, policy.peers),
          sessions: remote(MaintenanceServiceService, sessions.peers),
        },
        waitForFollowers,
      })
      await using _housekeeping = startHousekeeping({
        changeLog,
        lifetimes,
        routers: service.consumers.sessions,
      })
      const hosted = [
        host(EntityServiceService, service.entities),
        host(ChangeServiceService, service.changes),
        host(AuditServiceService, audit),
        host(IdentityServiceService, service.identity),
        host(OidcServiceService, service.oidc),
      ]
      await serve(hosted, healthOf(changeLog, bus))
    },
  )
}

import { readSettings } from '@overlay/process'
import type { ComponentProcess } from '@overlay/process/component'
import {
  AuditServiceService,
  ChangeServiceService,
  EntityServiceService,
  host,
  MaintenanceServiceService,
  PolicyServiceService,
  remote,
  SessionsServiceService,
} from '@overlay/rpc'
import { healthOf, runService } from '@overlay/service'
import { openReadiness } from './engine/readiness.js'
import { openService } from './service.js'
import { policySettings } from './settings.js'

/** Runs policy until it is stopped. Its migrations are in the folder `migrations`. */
export async function runPolicy(
  env: NodeJS.ProcessEnv,
  migrations: string,
  process: ComponentProcess,
): Promise<void> {
  const settings = readSettings(policySettings, env)
  await runService(
    { schema: 'policy', process, settings, migrations, heads: ['identity', 'sessions'] },
    async ({ audit, bus, connect, changeLog, databaseUrl, log, maintenance, serve, waitForFollowers }) => {
      await using identity = connect('identity', settings.identityPeers)
      await using sessions = connect('sessions', settings.sessionsPeers)
      await using service = await openService({
        changeLog,
        databaseUrl,
        bus,
        log,
        sources: { identity: identity.source, sessions: sessions.source },
        viewers: { identity: identity.entities, sessions: sessions.entities },
        routers: remote(SessionsServiceService, sessions.peers),
        waitForFollowers,
      })
      const healthOfSchema = healthOf(changeLog, bus)
      using readiness = openReadiness(bus, service.engine)
      const health = async () => {
        const { ready, checks } = await healthOfSchema()
        const followed = service.engine.isHeard()
          ? 'ok'
          : 'changes of this schema or of identity are not heard of'
        const isLoaded = service.engine.isLoaded()
        const memory = isLoaded ? 'ok' : 'rows of this schema or of identity are not loaded yet'
        const isReplaceable = readiness.state() === 'replaceable'
        const authorizations = isReplaceable ? 'answer 503 here; another replica answers them' : 'ok'
        const isReady = ready && isLoaded && !isReplaceable
        return { ready: isReady, checks: { ...checks, followed, memory, authorizations } }
      }
      const hosted = [
        host(EntityServiceService, service.entities),
        host(ChangeServiceService, service.changes),
        host(AuditServiceService, audit),
        host(PolicyServiceService, service.policy),
        host(MaintenanceServiceService, maintenance(service.checks)),
      ]
      await serve(hosted, health)
    },
  )
}

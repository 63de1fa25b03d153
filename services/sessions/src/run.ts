import { BlockList } from 'node:net'
import { boundedLines, readSettings } from '@overlay/process'
import type { ComponentProcess } from '@overlay/process/component'
import {
  AuditServiceService,
  ChangeServiceService,
  type Context,
  EntityServiceService,
  host,
  IdentityServiceService,
  MaintenanceServiceService,
  PkiServiceService,
  PolicyServiceService,
  remote,
  SessionsServiceService,
} from '@overlay/rpc'
import { healthOf, runService } from '@overlay/service'
import { openService } from './service.js'
import { sessionsSettings } from './settings.js'

/** Runs sessions until it is stopped. Its migrations are in the folder `migrations`. */
export async function runSessions(
  env: NodeJS.ProcessEnv,
  migrations: string,
  process: ComponentProcess,
): Promise<void> {
  const settings = readSettings(sessionsSettings, env)
  const heads = ['identity', 'policy'] as const
  await runService({ schema: 'sessions', process, settings, migrations, heads }, async (deps) => {
    const { audit, bus, changeLog, connect, log, maintenance, serve, waitForFollowers } = deps
    await using identity = connect('identity', settings.identityPeers)
    await using pki = connect('pki', settings.pkiPeers)
    await using policy = connect('policy', settings.policyPeers)
    const pkiCalls = remote(PkiServiceService, pki.peers)
    const listen = settings.ctrlListen && {
      address: settings.ctrlListen,
      controllerId: settings.ctrlId,
      limits: {
        connections: Math.min(settings.maxConnections, process.mostSockets()),
        connectionsPerSource: settings.maxConnectionsPerSource,
        proxies: settings.proxyProtocolFrom ?? new BlockList(),
        noteRefused: boundedLines(log, 'connection refused'),
      },
      keySource: pki.source,
      async fetchKey(context: Context) {
        const { keyPem, chainPem } = await pkiCalls.getServerCertificate({}, context)
        const { pems } = await pkiCalls.getTrustBundle({}, context)
        return { keyPem, chainPem, trustPems: pems }
      },
    }
    await using service = await openService({
      changeLog,
      log,
      identity: { ...identity, calls: remote(IdentityServiceService, identity.peers) },
      policy: { ...policy, calls: remote(PolicyServiceService, policy.peers) },
      pki: { ...pki, calls: pkiCalls },
      waitForFollowers,
      bus,
      listen: listen || undefined,
    })
    const hosted = [
      host(EntityServiceService, service.entities),
      host(ChangeServiceService, service.changes),
      host(AuditServiceService, audit),
      host(MaintenanceServiceService, maintenance(service.checks)),
      host(SessionsServiceService, service.sessions),
    ]
    const health = healthOf(changeLog, bus)
    await serve(hosted, async () => {
      const { ready, checks } = await health()
      const isListening = !listen || service.control.isListening()
      return {
        ready: ready && isListening,
        checks: { ...checks, control: isListening ? 'ok' : 'not listening' },
      }
    })
  })
}

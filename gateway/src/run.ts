import { BlockList } from 'node:net'
import { fileURLToPath } from 'node:url'
import { boundedLines, openLog, readSettings, splitAddress } from '@overlay/process'
import type { ComponentProcess } from '@overlay/process/component'
import { grpcHealth, serveGrpcHealth } from '@overlay/process/grpc-health'
import {
  type FetchKey,
  openPeers,
  openTls,
  renewServerKey,
  type ServerKey,
  serverKey,
} from '@overlay/process/tls'
import { ownContext, sourceOf } from '@overlay/rpc'
import { apisOf } from './api/apis.js'
import { countEntities } from './api/database.js'
import { openCaches } from './cache/caches.js'
import { openWritePositions } from './cache/write-positions.js'
import { noteWrites } from './clients/note-writes.js'
import { readAudit } from './clients/read-audit.js'
import { connectServices } from './clients/services.js'
import { gatewayHealth } from './health.js'
import { instanceId } from './http/ids.js'
import { apiOf, isClosed, pathOf, rootOf } from './http/paths.js'
import { mount } from './http/pipeline.js'
import { accessLog, keepRequest } from './http/request-log.js'
import { listen } from './http/server.js'
import { openShares } from './http/shares.js'
import { describeProgram, SERVER_NAME } from './http/version.js'
import {
  BODY_BYTES,
  BODY_MS,
  CHANGE_MS,
  DRAIN_MS,
  HEADER_BYTES,
  HEADERS_MS,
  IDLE_MS,
  OPEN_BODY_BYTES,
  REQUEST_MS,
} from './limits.js'
import { oidcApi } from './oidc/oidc.js'
import { gatewaySettings } from './settings.js'
import { describeReplicas } from './status/sources.js'
import { statusApi } from './status/status-api.js'
import { openChangeSource, openEventSource } from './streams/sources.js'
import { openStreams } from './streams/streams.js'
import { validator } from './streams/validations.js'
import { openWeb } from './web/web.js'

const serverLimits = {
  headersMs: HEADERS_MS,
  requestMs: REQUEST_MS,
  idleMs: IDLE_MS,
  headerBytes: HEADER_BYTES,
  changeMs: CHANGE_MS,
  drainMs: DRAIN_MS,
}

/** Runs a gateway until it is stopped. */
export async function runGateway(env: NodeJS.ProcessEnv, process: ComponentProcess): Promise<void> {
  const settings = readSettings(gatewaySettings, env)
  const log = openLog('gateway', { level: settings.logLevel, format: settings.logFormat })
  await using _tracing = await process.begin({ name: 'overlay-gateway', settings, log })
  const program = describeProgram(fileURLToPath(import.meta.url))
  await process.dropRights()

  using tls = await openTls(settings.tls, 'gateway', log)
  const { local } = process
  await using identity = openPeers(settings.identityPeers, { tls, log, local, service: 'identity' })
  await using pki = openPeers(settings.pkiPeers, { tls, log, local, service: 'pki' })
  await using policy = openPeers(settings.policyPeers, { tls, log, local, service: 'policy' })
  await using sessions = openPeers(settings.sessionsPeers, { tls, log, local, service: 'sessions' })
  const writePositions = openWritePositions()
  const peers = { identity, pki, policy, sessions }
  const services = noteWrites(connectServices(peers), writePositions.note)
  const { address, console, redirects, logoutRedirects } = settings
  await using caches = openCaches(services, writePositions, log, address)
  let isServing = false
  const health = gatewayHealth(caches.componentStates, () => isServing)
  await using _ops = await process.serveOps('gateway', settings.opsListen, { log, health })
  const probes = grpcHealth('gateway', health, log)
  await using _health = await serveGrpcHealth(settings.grpcHealthListen, probes, log)
  const announcesOidc = !settings.oidcUnannounced
  const apis = apisOf({ services, caches, address, program, announcesOidc, log })
  const oidc = oidcApi({ services, caches, address, redirects, logoutRedirects, log })
  const status = statusApi({
    services,
    sessions: caches.sessions,
    describeReplicas: describeReplicas(peers),
    address,
  })
  const web = await openWeb({ address, apis, health, console })

  const logAccess = accessLog(log)
  const app = mount(
    {
      sessions: caches.sessions,
      serverName: SERVER_NAME,
      paths: { pathOf, apiOf, isClosed },
      positions: writePositions.positions,
      instanceId: instanceId(),
      shares: openShares(settings),
      requestMs: REQUEST_MS,
      body: { maxBytes: BODY_BYTES, withinMs: BODY_MS },
      openBody: { maxBytes: OPEN_BODY_BYTES, withinMs: BODY_MS },
      onAnswer(record) {
        logAccess(record)
        keepRequest(record)
      },
      isClosing: () => !isServing,
    },
    [...apis, oidc, status],
    web,
  )
  const fetchKey: FetchKey<ServerKey> = (context) => services.pki.getServerCertificate({}, context)
  const key = await serverKey(fetchKey, log)
  const connections = {
    connections: Math.min(settings.maxConnections, process.mostSockets()),
    connectionsPerSource: settings.maxConnectionsPerSource,
    proxies: settings.proxyProtocolFrom ?? new BlockList(),
    noteRefused: boundedLines(log, 'connection refused'),
  }
  // others accept at the same address while a component of this process still loads
  if (local) await Promise.all(Object.values(peers).map((service) => service.found()))
  await using events = openEventSource(services.sessions, log)
  await using changes = openChangeSource((query, context) => readAudit(services, query, context), log)
  const malformed = boundedLines(log, 'malformed request')
  await using server = await listen(
    splitAddress(settings.listen),
    key,
    { ...serverLimits, ...connections },
    app,
    (request) => malformed(sourceOf(request.sourceAddress), request),
  )
  await using streams = openStreams({
    events,
    changes,
    countEntities: (signal) => countEntities(services, ownContext(signal)),
    validate: validator(services.sessions, sessions),
    path: `${rootOf('fabric')}/ws-api`,
    pathOf,
    sessions: caches.sessions,
    log,
  })
  caches.onDrop(streams.recheck)
  server.onUpgrade(streams.upgrade)
  using serverKeys = renewServerKey(fetchKey, log, key, server.renew)
  caches.onKeys(serverKeys.reload)
  isServing = true
  log.info(
    { listen: settings.listen, address: settings.address, connections: connections.connections },
    'ready',
  )

  const signal = await process.untilStopped('gateway')
  if (signal === 'SIGINT') server.hurry()
  isServing = false
  probes.stop()
}

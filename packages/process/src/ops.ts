import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { limitConnections } from '@overlay/rpc'
import type { Registry } from 'prom-client'
import { HEALTH_CHECK_MS, OPS_CONNECTIONS, OPS_TIMEOUTS } from './limits.js'
import { registry } from './metrics.js'
import { splitAddress } from './settings.js'

/** Whether this process can serve, and the state of its dependencies: 'ok', or what is wrong. */
export interface Health {
  readonly ready: boolean
  readonly checks: Readonly<Record<string, string>>
}

/** The part of a logger that reports failures. */
interface FailureLog {
  error(fields: { readonly err: unknown; readonly path?: string | undefined }, msg: string): void
}

export interface OpsOptions {
  readonly log: FailureLog
  /** Called on each request. When it throws the process is not ready. */
  readonly health: () => Promise<Health> | Health
  readonly metrics?: Pick<Registry, 'contentType' | 'metrics'>
}

/** Health and metrics, apart from the APIs. Meant for loopback and for the probes of an orchestrator. */
export async function serveOps(
  listen: string,
  { log, health, metrics = registry }: OpsOptions,
): Promise<AsyncDisposable & { readonly port: number }> {
  const answers: Record<string, (res: ServerResponse) => Promise<void>> = {
    '/healthz/live': async (res) => send(res, 200, 'application/json', '{"live":true}'),
    '/healthz/ready': async (res) => {
      const result = await healthInTime(health, log)
      send(res, result.ready ? 200 : 503, 'application/json', JSON.stringify(result))
    },
    '/metrics': async (res) => send(res, 200, metrics.contentType, await metrics.metrics()),
  }

  const server = createServer(OPS_TIMEOUTS, (req, res) => {
    const answer = req.method === 'GET' ? answers[req.url?.split('?')[0] ?? ''] : undefined
    if (!answer) return send(res, 404, 'text/plain', 'not found')
    answer(res).catch((err: unknown) => {
      log.error({ err, path: req.url }, 'operations request failed')
      send(res, 500, 'text/plain', 'failed')
    })
  })
  server.on('connection', limitConnections(OPS_CONNECTIONS).admit)
  server.timeout = OPS_TIMEOUTS.requestTimeout
  const { host, port } = splitAddress(listen)
  server.listen(port, host)
  await once(server, 'listening') // rejects when it cannot listen
  return {
    port: (server.address() as AddressInfo).port,
    async [Symbol.asyncDispose]() {
      server.close()
      server.closeAllConnections()
      await once(server, 'close')
    },
  }
}

/** Not ready if the health cannot be determined in time. */
export const healthInTime = (
  health: OpsOptions['health'],
  log: FailureLog,
  limitMs = HEALTH_CHECK_MS,
): Promise<Health> =>
  inTime(health, limitMs).catch((err: unknown) => {
    log.error({ err }, 'health not determined')
    return { ready: false, checks: {} }
  })

function send(res: ServerResponse, status: number, type: string, body: string): void {
  res.writeHead(status, { 'content-type': type, 'content-length': Buffer.byteLength(body) }).end(body)
}

async function inTime(health: OpsOptions['health'], limitMs: number): Promise<Health> {
  const late = once(AbortSignal.timeout(limitMs), 'abort').then(() => {
    throw new Error('health checks take too long')
  })
  return Promise.race([health(), late])
}

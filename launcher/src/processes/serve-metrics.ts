import { type Health, nodeMetrics, processMetrics, serveOps } from '@overlay/process'
import { coalesced } from '@overlay/process/async'
import type { ProcessRecord } from '../home/status-record.js'
import { METRICS_MS } from '../limits.js'
import { errorText } from '../system/error-text.js'
import { freePort } from '../system/ports.js'
import { askOps, problemsIn, readinessOf } from './health.js'
import { type MetricsText, mergeMetrics } from './prometheus-text.js'

export const DEFAULT_METRICS_ADDRESS = '127.0.0.1:9962'

interface MetricsOptions {
  /** `host:port`; undefined: the default, or a free port if the default is taken. */
  readonly address: string | undefined
  readonly processes: () => readonly ProcessRecord[]
  readonly print: (line: string) => void
}

/** Serves health and metrics of all processes at one address, which it returns. */
export async function serveMetrics({
  address,
  processes,
  print,
}: MetricsOptions): Promise<AsyncDisposable & { readonly address: string }> {
  const options = {
    log: { error: ({ err }: { err: unknown }, msg: string) => print(`${msg}: ${errorText(err)}`) },
    health: () => healthOf(processes()),
    metrics: allMetrics(processes),
  }
  const serveAt = async (listen: string) =>
    Object.assign(await serveOps(listen, options), { address: listen })
  if (address !== undefined) return serveAt(address)
  return serveAt(DEFAULT_METRICS_ADDRESS).catch(async (err: NodeJS.ErrnoException) => {
    if (err.code !== 'EADDRINUSE') throw err
    return serveAt(`127.0.0.1:${await freePort()}`)
  })
}

async function healthOf(processes: readonly ProcessRecord[]): Promise<Health> {
  const entries = processes.map(async ({ name, ops }) => {
    const readiness = await readinessOf(ops)
    return [name, readiness.ready ? 'ok' : problemsIn(readiness).join(', ') || 'not ready'] as const
  })
  const checks = Object.fromEntries(await Promise.all(entries))
  return { ready: Object.values(checks).every((state) => state === 'ok'), checks }
}

/** One round of requests serves all scrapes that wait for it. A process that does not answer is left out. */
function allMetrics(processes: () => readonly ProcessRecord[]) {
  const { registry, up, restarts } = processMetrics()
  const own = nodeMetrics()
  const read = async ({ name, ops }: ProcessRecord): Promise<MetricsText | undefined> => {
    const answer = await askOps(ops, '/metrics', METRICS_MS)
    return answer?.status === 200 ? { process: name, text: answer.body } : undefined
  }
  const metrics = coalesced(async () => {
    const asked = processes()
    const texts = await Promise.all(asked.map(read))
    restarts.reset()
    asked.forEach(({ name, restarts: count }, at) => {
      up.set({ process: name }, texts[at] ? 1 : 0)
      restarts.inc({ process: name }, count)
    })
    return mergeMetrics([
      ...texts.filter((text) => text !== undefined),
      { process: 'launcher', text: await own.metrics() },
      { text: await registry.metrics() },
    ])
  })
  return { contentType: registry.contentType, metrics }
}

import { hostname } from 'node:os'
import type { FollowedSchema, ProcessCertificate, ProcessDescription, ProcessQueue } from '@overlay/rpc'
import type { MetricValue } from 'prom-client'
import { build } from './build.js'
import { certificateReads, countConnections, followers, metrics, pools } from './metrics.js'
import { recentRefusals, recentSlowRequests } from './recent.js'

/** What describes itself. */
export interface DescribedComponents {
  /** Its own. Absent: it has none. */
  readonly schema?: string
  readonly bus?: { connected(): boolean }
  /** Whether routers connect to it. */
  readonly hasRouters: boolean
}

/** What this process knows about itself. Read from its metrics: it costs nothing until it is asked for. */
export async function describeProcess({
  schema,
  bus,
  hasRouters,
}: DescribedComponents): Promise<ProcessDescription> {
  for (const read of certificateReads) read()
  const [positions, routers, certificates, queues] = await Promise.all([
    metrics.changeLogPosition.get(),
    metrics.routersConnected.get(),
    certificatesOf(),
    queuesOf(),
  ])
  return {
    ...build,
    host: hostname(),
    pid: process.pid,
    nodeVersion: process.versions.node,
    startedAtMs: Math.round(performance.timeOrigin),
    position: positions.values.find(({ labels }) => labels.schema === schema)?.value ?? 0,
    followed: followedSchemas(),
    queues,
    pool: pools.size > 0 ? countConnections() : undefined,
    bus: bus ? (bus.connected() ? 'ok' : 'unavailable') : '',
    certificates,
    routers: hasRouters ? (routers.values[0]?.value ?? 0) : undefined,
    slowRequests: recentSlowRequests(),
    refusals: recentRefusals(),
  }
}

/** Of several followers of one schema, the one that is furthest behind. */
function followedSchemas(): FollowedSchema[] {
  const schemas = new Map<string, FollowedSchema>()
  for (const { schema, number, silentMs } of followers) {
    const own = { schema, position: number(), silentMs: finite(silentMs()) }
    const other = schemas.get(schema)
    if (!other || (own.position ?? -1) < (other.position ?? -1)) schemas.set(schema, own)
  }
  return [...schemas.values()]
}

async function queuesOf(): Promise<ProcessQueue[]> {
  const [tasks, refused, refusedAt] = await Promise.all([
    metrics.queueTasks.get(),
    metrics.queueRefused.get(),
    metrics.queueRefusedAt.get(),
  ])
  const names = new Set([...tasks.values, ...refused.values].map(({ labels }) => String(labels.queue)))
  return [...names].sort().map((name) => {
    const find = ({ values }: { values: MetricValue<string>[] }, state?: string): number | undefined =>
      values.find(({ labels }) => labels.queue === name && labels.state === state)?.value
    const at = find(refusedAt)
    return {
      name,
      running: find(tasks, 'running') ?? 0,
      waiting: find(tasks, 'waiting') ?? 0,
      refused: find(refused) ?? 0,
      refusedAtMs: at === undefined ? undefined : Math.round(at * 1000),
    }
  })
}

async function certificatesOf(): Promise<ProcessCertificate[]> {
  const [network, presented] = await Promise.all([
    metrics.certificateExpiry.get(),
    metrics.peerCertificateExpiry.get(),
  ])
  const described = (role: unknown, state: unknown, seconds: number): ProcessCertificate => ({
    role: String(role),
    state: String(state),
    expiresAtMs: Math.round(seconds * 1000),
  })
  return [
    ...network.values.map(({ labels: { role, state }, value }) => described(role, state, value)),
    ...presented.values.map(({ labels: { peer }, value }) => described(peer, '', value)),
  ].filter(({ expiresAtMs }) => Number.isSafeInteger(expiresAtMs))
}

const finite = (ms: number): number | undefined => (Number.isFinite(ms) ? Math.round(ms) : undefined)

import { certificatesOf, daysUntil } from './certificates.js'
import { concernsOf } from './concerns.js'
import { isService, type NetworkStatus, nameOf } from './status.js'

/** The same as the page, for programs. Times are in ISO 8601. */
export function statusJson(status: NetworkStatus): string {
  const { atMs, answeredBy, replicas, follows, offlineRouters } = status
  const data = {
    at: timeOf(atMs),
    answeredBy,
    attention: concernsOf(status),
    replicas: replicas.map(({ service, address, problem, process }) => {
      if (!process) return { service, address, answers: false, problem }
      const { version, revision, nodeVersion, startedAtMs, position, pool, bus, routers } = process
      return {
        ...{ service, address, answers: true, process: nameOf(process), version, revision, nodeVersion },
        startedAt: timeOf(startedAtMs),
        ...(isService(service) && { position, bus }),
        ...(pool && { pool }),
        ...(routers !== undefined && { connectedRouters: routers }),
        queues: process.queues.map(({ refusedAtMs, ...queue }) => ({
          ...queue,
          lastRefusedAt: refusedAtMs === undefined ? null : timeOf(refusedAtMs),
        })),
        slowRequests: process.slowRequests.map(({ atMs, ...request }) => ({ at: timeOf(atMs), ...request })),
        refusals: process.refusals.map(({ atMs, ...refusal }) => ({ at: timeOf(atMs), ...refusal })),
      }
    }),
    positions: follows.map(({ replica: { service, process }, schema, position, head, lateMs, silentMs }) => ({
      service,
      process: process && nameOf(process),
      schema,
      position: position ?? null,
      head: head ?? null,
      lagMs: Math.round(lateMs),
      silentMs: silentMs ?? null,
    })),
    certificates: certificatesOf(status).map(({ name, expiresAtMs }) => ({
      name,
      expiresAt: timeOf(expiresAtMs),
      daysLeft: daysUntil(expiresAtMs, atMs),
    })),
    offlineRouters: offlineRouters ?? null,
  }
  return JSON.stringify({ data, meta: {} })
}

const timeOf = (ms: number): string => new Date(ms).toISOString()

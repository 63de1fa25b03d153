import { isSlow, keepRefusal, keepSlow, type Log, metrics } from '@overlay/process'
import { clientAddressOf } from '@overlay/process/tls'
import { LOGGED_PATH_CHARACTERS } from '../limits.js'
import type { RequestContext } from './exchange.js'

/** One answered request, for log and metrics. */
export interface AccessRecord {
  readonly c: RequestContext
  readonly status: number
  readonly seconds: number
  /** The client closed the connection before the end of the answer. */
  readonly aborted: boolean
}

const members = [
  ...(['api', 'operation', 'method', 'path', 'status', 'durationMs', 'requestId'] as const),
  ...(['sourceAddress', 'traceId', 'apiSessionId', 'identityId', 'code', 'aborted'] as const),
]

/** Writes one line and one measurement for each answered request. */
export function accessLog(log: Log): (record: AccessRecord) => void {
  const write = log.fixedLines('request', members)
  return ({ c: { env }, status, seconds, aborted }) => {
    const { api, operation, incoming, session, error } = env
    metrics.httpRequest.observe({ api, operation: operation || 'none', status }, seconds)
    const isKnown = operation !== ''
    const facts = {
      api,
      operation: isKnown ? operation : undefined,
      method: isKnown ? undefined : incoming.method,
      path: isKnown ? undefined : env.path.slice(0, LOGGED_PATH_CHARACTERS),
      status,
      durationMs: Math.round(seconds * 1e5) / 100,
      requestId: env.requestId,
      sourceAddress: clientAddressOf(incoming.socket),
      traceId: env.traceparent?.slice(3, 35),
      apiSessionId: session?.id,
      identityId: session?.identityId,
      code: env.faultCode,
      aborted: aborted || undefined,
    }
    if (error === undefined) return write(facts)
    metrics.defects.inc()
    log.error({ ...facts, err: error }, 'request failed')
  }
}

export const STATUS_API = 'status'

const busyStatuses: ReadonlySet<number> = new Set([429, 503])

/** Keeps slow requests, and those refused for now, for the page. Not those to the page: it waits for unavailable replicas. */
export function keepRequest({ c: { env }, status, seconds }: AccessRecord): void {
  const isRefused = busyStatuses.has(status)
  const wasSlow = status !== 429 && isSlow(seconds) // those to wait are answered late
  if (!isRefused && !wasSlow) return
  const { api, operation, requestId, incoming, faultCode: reason } = env
  if (api === STATUS_API) return
  const name = `${api} ${operation || incoming.method}`
  if (wasSlow) keepSlow(name, String(status), seconds, requestId)
  if (!isRefused) return
  const sourceAddress = clientAddressOf(incoming.socket)
  keepRefusal('request refused', { reason, sourceAddress, operation: name, status, requestId })
}

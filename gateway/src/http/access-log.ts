import { type Log, metrics } from '@overlay/process'
import { clientAddressOf } from '@overlay/process/tls'
import type { RequestContext } from './exchange.js'

/** One answered request, for log and metrics. */
export interface AccessRecord {
  readonly c: RequestContext
  readonly status: number
  readonly seconds: number
  /** The client closed the connection before the end of the answer. */
  readonly aborted: boolean
}

/** Unknown paths hold anything. */
const MAX_PATH_LENGTH = 100

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
      path: isKnown ? undefined : env.path.slice(0, MAX_PATH_LENGTH),
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

import { metrics } from '@overlay/process'
import { clientAddressOf } from '@overlay/process/tls'
import type { Logger } from 'pino'
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

/** Writes one line and one measurement for each answered request. */
export function accessLog(log: Logger): (record: AccessRecord) => void {
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
    if (error === undefined) return log.info(facts, 'request')
    metrics.defects.inc()
    log.error({ ...facts, err: error }, 'request failed')
  }
}

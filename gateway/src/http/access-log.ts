import { metrics } from '@overlay/platform/process'
import type { AccessRecord } from './pipeline.js'

export interface RequestLog {
  info(facts: object, message: string): void
  error(facts: object, message: string): void
}

/** Of paths that nobody has: they may be anything. */
const LONGEST_PATH = 100

/** One line and one measurement for each request, when its answer has gone. */
export const accessLog =
  (log: RequestLog) =>
  ({ c, operation, status, seconds, aborted }: AccessRecord): void => {
    const { api, requestId, sourceAddress, session, refusal, broken } = c
    metrics.httpRequest.observe({ api, operation: operation || 'none', status }, seconds)
    const facts = {
      api,
      operation: operation || undefined,
      ...(operation === '' && { method: c.incoming.method, path: c.path.slice(0, LONGEST_PATH) }),
      status,
      durationMs: Math.round(seconds * 1e5) / 100,
      requestId,
      sourceAddress,
      traceId: c.traceparent()?.slice(3, 35),
      apiSessionId: session?.id,
      identityId: session?.identityId,
      code: refusal,
      aborted: aborted || undefined,
    }
    if (broken === undefined) log.info(facts, 'request')
    else log.error({ ...facts, err: broken }, 'request failed')
  }

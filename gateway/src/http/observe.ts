import { metrics } from '@overlay/platform'
import type { Seen } from './frame.js'

export interface RequestLog {
  info(facts: object, message: string): void
  error(facts: object, message: string): void
}

/** One line and one measurement for each request, when its answer has gone. */
export const observer =
  (log: RequestLog) =>
  ({ ask, operation, status, seconds, aborted }: Seen): void => {
    const { api, requestId, session, refusal, broken } = ask
    metrics.httpRequest.observe({ api, operation: operation || 'none', status }, seconds)
    const facts = {
      api,
      operation: operation || undefined,
      method: operation ? undefined : ask.incoming.method,
      status,
      durationMs: Math.round(seconds * 1e5) / 100,
      requestId,
      traceId: ask.traceparent()?.slice(3, 35),
      apiSessionId: session?.id,
      identityId: session?.identityId,
      code: refusal,
      aborted: aborted || undefined,
    }
    if (broken === undefined) log.info(facts, 'request')
    else log.error({ ...facts, err: broken }, 'request failed')
  }

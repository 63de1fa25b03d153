import { type IdentityServiceService, invalid, type Methods } from '@overlay/rpc'
import { goDuration } from '../domain/go-duration.js'
import { insertTrace, removeTrace, traceChange } from '../store/identity-traces.js'
import type { Deps } from './deps.js'

/** Replaces the trace of an identity, or ends it. */
export const traceIdentity =
  ({ changeLog }: Deps): Methods<IdentityServiceService>['traceIdentity'] =>
  async ({ id, enabled, duration, traceId, channels }, context) => {
    const { result } = await changeLog.write(context, async (tx) => {
      const before = await removeTrace(tx, id)
      if (!enabled) return { result: null, changes: before ? [traceChange(id, before, null)] : [] }
      const durationMs = goDuration(duration)
      if (durationMs === undefined)
        throw invalid('duration', `time: invalid duration "${duration}"`, duration)
      const after = await insertTrace(tx, id, { durationMs, traceId, channels })
      return { result: after, changes: [traceChange(id, before, after)] }
    })
    return result ? { traceId: result.traceId, untilMs: result.until.getTime() } : { traceId: '', untilMs: 0 }
  }

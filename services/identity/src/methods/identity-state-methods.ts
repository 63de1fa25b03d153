import { type IdentityServiceService, invalid, type Methods } from '@overlay/rpc'
import { writeChanges } from '@overlay/store/change-log'
import { goDuration } from '../domain/go-duration.js'
import * as store from '../store/disabled-identities.js'
import { saveConnections } from '../store/identity-connections.js'
import { insertTrace, removeTrace, traceChange } from '../store/identity-traces.js'
import type { Deps } from './deps.js'

/** What identities have beside their members. */
export function identityStateMethods(deps: Deps) {
  const { changeLog, waitForFollowers } = deps
  const { db } = changeLog
  return {
    async disableIdentity({ id, durationMinutes }, context) {
      const position = await writeChanges(changeLog, context, async (tx) => {
        await store.refuseDefaultAdmin(tx, id)
        return store.disableIdentity(tx, id, durationMinutes)
      })
      return waitForFollowers({ id, position }, context, ['sessions']) // for the sessions of its API sessions
    },

    /** Enables an identity that an admin or too many failed logins disabled. */
    async enableIdentity({ id }, context) {
      const position = await writeChanges(changeLog, context, async (tx) => [
        await store.enableIdentity(tx, id),
      ])
      return { id, position }
    },

    /** Replaces the trace of an identity, or ends it. */
    async traceIdentity({ id, enabled, duration, traceId, channels }, context) {
      const { result } = await changeLog.write(context, async (tx) => {
        const before = await removeTrace(tx, id)
        if (!enabled) return { result: null, changes: before ? [traceChange(id, before, null)] : [] }
        const durationMs = goDuration(duration)
        if (durationMs === undefined)
          throw invalid('duration', `time: invalid duration "${duration}"`, duration)
        const after = await insertTrace(tx, id, { durationMs, traceId, channels })
        return { result: after, changes: [traceChange(id, before, after)] }
      })
      return result
        ? { traceId: result.traceId, untilMs: result.until.getTime() }
        : { traceId: '', untilMs: 0 }
    },

    async reportConnections({ identityIds }) {
      await saveConnections(db, identityIds)
      return {}
    },
  } satisfies Partial<Methods<IdentityServiceService>>
}

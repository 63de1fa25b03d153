import { type IdentityServiceService, invalid, type Methods } from '@overlay/rpc'
import { writeChanges } from '@overlay/store/change-log'
import { goDuration } from '../domain/go-duration.js'
import { endLapsedNames } from '../jobs/housekeeping.js'
import * as store from '../store/identity-state.js'
import { insertTrace, removeTrace, saveConnections, traceChange } from '../store/identity-state.js'
import { hasRouter, releaseName, reserveName } from '../store/router-identities.js'
import type { MethodDeps } from './method-deps.js'

/** The state of identities that is no member of them, and the names of routers, which are those of their identities. */
export function identityStateMethods(deps: Pick<MethodDeps, 'changeLog' | 'routers' | 'waitForFollowers'>) {
  const { changeLog, routers, waitForFollowers } = deps
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

    /**
     * The identity of a router has its name. The router gets it only if no other identity has it, and no router that has
     * given it up keeps it from others because this service has not followed that yet.
     */
    async reserveRouterName(request, { deadline, signal }) {
      const reserve = () => db.transaction(deadline, (tx) => reserveName(tx, request))
      if (await reserve()) return {}
      if (await hasRouter(db, request.name)) await routers.catchUp(signal)
      await endLapsedNames(db, routers, signal)
      if (await reserve()) return {}
      throw invalid('name', 'name must be unique', request.name)
    },

    async releaseRouterName(request) {
      await releaseName(db, request)
      return {}
    },
  } satisfies Partial<Methods<IdentityServiceService>>
}

import type { transitRouter } from '@overlay/model'
import { newId, type Seams } from '@overlay/platform/kind-store'
import { Fault } from '@overlay/rpc'
import { endOfRouter, enrollmentsOf, liveOf, type Pki } from './edge-router.js'

/** The list shows all routers; those of the edge are changed as what they are. */
export const transitRouterSeams = (pki: Pki): Seams<typeof transitRouter> => ({
  async writing(_tx, _next, before) {
    if (before?.isEdge) throw new Fault('CAN_NOT_UPDATE_ROUTER')
    return before ? {} : { enrollmentId: newId('short') }
  },

  deleting: endOfRouter,

  async view(db, rows, { context }) {
    const ids = rows.map(({ id }) => id)
    const live = await liveOf(db, ids)
    const transit = rows.filter(({ isEdge }) => !isEdge)
    const enrollments = await enrollmentsOf(pki, 'transit-routers', transit, context)
    return ids.map((id) => ({ isOnline: live.has(id), ...enrollments.get(id) }))
  },
})

import {
  ctrlType,
  edgeType,
  HealthEvent,
  RemoveFabricTerminatorRequest,
  RemoveFabricTerminatorsRequest,
  RemoveTerminatorRequest,
  UpdateFabricTerminatorRequest,
  UpdateTerminatorRequest,
} from '@overlay/channel'
import { type Handler, onMessage } from '../channel/handlers.js'
import { answer, failed, refused, succeeded } from '../channel/replies.js'
import type { CheckAccess } from '../domain/router-access.js'
import { LIST_BYTES } from '../limits.js'
import { actorOf } from './actor.js'
import type { TerminatorRemoval } from './remove-terminators.js'
import { changesIn, countHealth, removeAll } from './terminator-requests.js'
import type { TerminatorUpdate } from './update-terminators.js'

export interface ChangeDeps {
  readonly checkAccess: CheckAccess
  readonly update: (update: TerminatorUpdate) => Promise<void>
  readonly remove: (removal: TerminatorRemoval) => Promise<readonly string[]>
}

const EDGE_BINDING = 'edge'

/** Routers change and delete terminators for their clients, and their own. */
export function changeHandlers({ checkAccess, update, remove }: ChangeDeps): readonly Handler[] {
  return [
    onMessage(edgeType.updateTerminator, UpdateTerminatorRequest, (request, message, router, spend) =>
      answer(router, message, refused, async () => {
        const { sessionToken, apiSessionToken, fingerprints, terminatorId: id } = request
        const { routerId } = router
        const claim = { routerId, sessionToken, apiSessionToken, fingerprints, type: 'Bind', spend } as const
        const { serviceId, identityId: hostId } = await checkAccess(claim)
        const asked = { id, routerId, binding: EDGE_BINDING, asking: { serviceId, hostId } }
        await update({ ...asked, ...changesIn(request), by: actorOf(hostId) })
        return { type: edgeType.updateTerminatorResponse }
      }),
    ),

    // The session is not checked: it may have ended, and the router is asked to clean up.
    onMessage(edgeType.removeTerminator, RemoveTerminatorRequest, ({ terminatorId }, message, router) =>
      answer(router, message, refused, async () => {
        await removeAll(remove, [terminatorId], router.routerId)
        return { type: edgeType.removeTerminatorResponse }
      }),
    ),

    onMessage(edgeType.healthEvent, HealthEvent, ({ checkPassed }) => countHealth(checkPassed)),

    onMessage(ctrlType.updateTerminator, UpdateFabricTerminatorRequest, (request, message, router) =>
      answer(router, message, failed, async () => {
        const { routerId } = router
        const { terminatorId: id } = request
        const by = actorOf(routerId)
        await update({ id, routerId, asking: 'itself', ...changesIn(request), by })
        return succeeded()
      }),
    ),

    onMessage(ctrlType.removeTerminator, RemoveFabricTerminatorRequest, ({ terminatorId }, message, router) =>
      answer(router, message, failed, async () => {
        await removeAll(remove, [terminatorId], router.routerId)
        return succeeded()
      }),
    ),

    onMessage(
      ctrlType.removeTerminators,
      RemoveFabricTerminatorsRequest,
      ({ terminatorIds }, message, router) =>
        answer(router, message, failed, async () => {
          await removeAll(remove, terminatorIds, router.routerId)
          return succeeded()
        }),
      { mostBytes: LIST_BYTES, items: ({ terminatorIds }) => terminatorIds.length },
    ),
  ]
}

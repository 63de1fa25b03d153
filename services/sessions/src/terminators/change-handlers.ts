import {
  ctrlType,
  edgeErrorCode,
  edgeType,
  HealthEvent,
  RemoveFabricTerminatorRequest,
  RemoveFabricTerminatorsRequest,
  RemoveTerminatorRequest,
  UpdateFabricTerminatorRequest,
  UpdateTerminatorRequest,
  type UpdateTunnelTerminatorRequest,
} from '@overlay/channel'
import { metrics } from '@overlay/process'
import { pagesOf } from '@overlay/process/async'
import { type Handler, LIST_BYTES, onMessage } from '../channel/handlers.js'
import { answer, failed, refused, succeeded } from '../channel/replies.js'
import { AccessRefused, type CheckAccess } from '../domain/router-access.js'
import { MAX_COST } from '../domain/terminator-selection.js'
import { actorOf } from './actor.js'
import { precedenceOf } from './precedence.js'
import type { TerminatorRemoval } from './remove-terminators.js'
import type { TerminatorUpdate } from './update-terminators.js'

export interface ChangeDeps {
  readonly checkAccess: CheckAccess
  readonly update: (update: TerminatorUpdate) => Promise<void>
  readonly remove: (removal: TerminatorRemoval) => Promise<readonly string[]>
}

const EDGE_BINDING = 'edge'
const PAGE = 500

/** Routers change and delete terminators for their clients, and their own. */
export function changeHandlers({ checkAccess, update, remove }: ChangeDeps): readonly Handler[] {
  return [
    onMessage(edgeType.updateTerminator, UpdateTerminatorRequest, (request, message, router) =>
      answer(router, message, refused, async () => {
        const { sessionToken, apiSessionToken, fingerprints, terminatorId: id } = request
        const { routerId } = router
        const claim = { routerId, sessionToken, apiSessionToken, fingerprints, type: 'Bind' } as const
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

export const countHealth = (passed: boolean): void =>
  metrics.healthChecks.inc({ result: passed ? 'passed' : 'failed' })

/** Throws AccessRefused if terminators of other routers are among these, after its own are deleted. */
export async function removeAll(
  remove: ChangeDeps['remove'],
  ids: readonly string[],
  routerId: string,
): Promise<void> {
  let foreign: string | undefined
  for (const page of pagesOf(ids, PAGE))
    foreign = (await remove({ ids: page, routerId, by: actorOf(routerId) }))[0] ?? foreign
  if (foreign !== undefined)
    throw new AccessRefused(
      edgeErrorCode.invalidTerminator,
      `terminator ${foreign} belongs to another router`,
    )
}

/** What an update changes. Throws AccessRefused. */
export function changesIn(
  request: Pick<UpdateTunnelTerminatorRequest, 'cost' | 'precedence' | 'updateCost' | 'updatePrecedence'>,
): Pick<TerminatorUpdate, 'cost' | 'precedence'> {
  const { cost, updateCost, updatePrecedence } = request
  if (updateCost && cost > MAX_COST)
    throw new AccessRefused(
      edgeErrorCode.invalidCost,
      `invalid cost ${cost}. cost must be between 0 and ${MAX_COST} inclusive`,
    )
  return {
    cost: updateCost ? cost : undefined,
    precedence: updatePrecedence ? precedenceOf(request.precedence) : undefined,
  }
}

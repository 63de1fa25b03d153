import {
  ctrlType,
  edgeType,
  HealthEvent,
  RemoveFabricTerminatorRequest,
  RemoveFabricTerminatorsRequest,
  RemoveTerminatorRequest,
  UpdateFabricTerminatorRequest,
  UpdateTerminatorRequest,
  type UpdateTunnelTerminatorRequest,
} from '@overlay/channel'
import { metrics } from '@overlay/platform/process'
import { AccessRefused, accessErrors, type CheckAccess } from '../access/router-access.js'
import { failed, isRefusal, refused, succeeded } from '../control/answers.js'
import { type Handler, onMessage } from '../control/handlers.js'
import { MAX_COST } from '../domain/terminator-selection.js'
import { actorOf } from './actor.js'
import { precedenceOf } from './precedence.js'
import type { TerminatorRemoval } from './remove-batch.js'
import type { TerminatorUpdate } from './update-batch.js'

export interface ChangeDeps {
  readonly checkAccess: CheckAccess
  readonly update: (update: TerminatorUpdate) => Promise<void>
  readonly remove: (removal: TerminatorRemoval) => Promise<readonly string[]>
}

const EDGE_BINDING = 'edge'

/** Routers change and delete terminators for their clients, and their own. */
export function changeHandlers({ checkAccess, update, remove }: ChangeDeps): readonly Handler[] {
  return [
    onMessage(
      edgeType.updateTerminator,
      UpdateTerminatorRequest,
      async (request, message, { routerId, channel }) => {
        try {
          const { sessionToken, apiSessionToken, fingerprints, terminatorId: id } = request
          const claim = { routerId, sessionToken, apiSessionToken, fingerprints, type: 'Bind' } as const
          const { identityId } = await checkAccess(claim)
          const by = actorOf(identityId)
          await update({ id, routerId, binding: EDGE_BINDING, ...changesIn(request), by })
          channel.reply(message, { type: edgeType.updateTerminatorResponse })
        } catch (err) {
          channel.reply(message, refused(err))
          if (!isRefusal(err)) throw err
        }
      },
    ),

    // The session is not checked: it may have ended, and the router is asked to clean up.
    onMessage(
      edgeType.removeTerminator,
      RemoveTerminatorRequest,
      async ({ terminatorId }, message, { routerId, channel }) => {
        try {
          await removeAll(remove, [terminatorId], routerId)
          channel.reply(message, { type: edgeType.removeTerminatorResponse })
        } catch (err) {
          channel.reply(message, refused(err))
          if (!isRefusal(err)) throw err
        }
      },
    ),

    onMessage(
      ctrlType.updateTerminator,
      UpdateFabricTerminatorRequest,
      async (request, message, { routerId, channel }) => {
        try {
          const by = actorOf(routerId)
          await update({ id: request.terminatorId, routerId, ...changesIn(request), by })
          channel.reply(message, succeeded())
        } catch (err) {
          channel.reply(message, failed(err))
          if (!isRefusal(err)) throw err
        }
      },
    ),

    onMessage(
      ctrlType.removeTerminator,
      RemoveFabricTerminatorRequest,
      async ({ terminatorId }, message, { routerId, channel }) => {
        try {
          await removeAll(remove, [terminatorId], routerId)
          channel.reply(message, succeeded())
        } catch (err) {
          channel.reply(message, failed(err))
          if (!isRefusal(err)) throw err
        }
      },
    ),

    onMessage(
      ctrlType.removeTerminators,
      RemoveFabricTerminatorsRequest,
      async ({ terminatorIds }, message, { routerId, channel }) => {
        try {
          await removeAll(remove, terminatorIds, routerId)
          channel.reply(message, succeeded())
        } catch (err) {
          channel.reply(message, failed(err))
          if (!isRefusal(err)) throw err
        }
      },
    ),

    onMessage(edgeType.healthEvent, HealthEvent, ({ checkPassed }) => countHealth(checkPassed)),
  ]
}

export const countHealth = (passed: boolean): void =>
  metrics.healthChecks.inc({ result: passed ? 'passed' : 'failed' })

/** The router has its way with terminators that do not exist any more. Throws AccessRefused after the others are deleted. */
export async function removeAll(
  remove: ChangeDeps['remove'],
  ids: readonly string[],
  routerId: string,
): Promise<void> {
  const [foreign] = await remove({ ids, routerId, by: actorOf(routerId) })
  if (foreign !== undefined)
    throw new AccessRefused(accessErrors.invalidTerminator, `terminator ${foreign} belongs to another router`)
}

/** What an update changes. Throws AccessRefused. */
export function changesIn(
  request: Pick<UpdateTunnelTerminatorRequest, 'cost' | 'precedence' | 'updateCost' | 'updatePrecedence'>,
): Pick<TerminatorUpdate, 'cost' | 'precedence'> {
  const { cost, updateCost, updatePrecedence } = request
  if (updateCost && cost > MAX_COST)
    throw new AccessRefused(
      accessErrors.invalidCost,
      `invalid cost ${cost}. cost must be between 0 and ${MAX_COST} inclusive`,
    )
  return {
    cost: updateCost ? cost : undefined,
    precedence: updatePrecedence ? precedenceOf(request.precedence) : undefined,
  }
}

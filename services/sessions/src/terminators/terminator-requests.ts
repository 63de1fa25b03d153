import {
  type CreateTerminatorV2Request,
  edgeErrorCode,
  TerminatorPrecedence,
  type UpdateTunnelTerminatorRequest,
} from '@overlay/channel'
import { metrics } from '@overlay/process'
import { pagesOf } from '@overlay/process/async'
import { AccessRefused } from '../domain/router-access.js'
import { isShowable } from '../domain/router-text.js'
import { MAX_COST, type Precedence } from '../domain/terminator-precedence.js'
import { MAX_PEER_DATA_BYTES, MAX_TERMINATOR_ID_LENGTH, REMOVAL_PAGE } from '../limits.js'
import { actorOf } from './actor.js'
import type { TerminatorRemoval } from './remove-terminators.js'
import type { TerminatorUpdate } from './update-terminators.js'

export const invalid = (text: string) => new AccessRefused(edgeErrorCode.invalidTerminator, text)

function checkCost(cost: number): void {
  if (cost > MAX_COST)
    throw new AccessRefused(
      edgeErrorCode.invalidCost,
      `invalid cost ${cost}. cost must be between 0 and ${MAX_COST} inclusive`,
    )
}

const names: Readonly<Partial<Record<TerminatorPrecedence, Precedence>>> = {
  [TerminatorPrecedence.DEFAULT]: 'default',
  [TerminatorPrecedence.REQUIRED]: 'required',
  [TerminatorPrecedence.FAILED]: 'failed',
}

/** Throws AccessRefused for a value that does not exist. */
export function precedenceOf(precedence: TerminatorPrecedence): Precedence {
  const name = names[precedence]
  if (!name) throw new AccessRefused(edgeErrorCode.invalidPrecedence, `invalid precedence: ${precedence}`)
  return name
}

/** The members that every request describes alike. Throws AccessRefused. */
export function membersOf(
  id: string,
  request: Pick<
    CreateTerminatorV2Request,
    'peerData' | 'cost' | 'precedence' | 'instanceId' | 'instanceSecret'
  >,
) {
  const { cost, peerData, instanceId, instanceSecret } = request
  checkCost(cost)
  if (id.length > MAX_TERMINATOR_ID_LENGTH || instanceId.length > MAX_TERMINATOR_ID_LENGTH)
    throw invalid('provided terminator id or instance id is too long')
  if (!isShowable(instanceId)) throw invalid('invalid instance id')
  const bytes = [...peerData.values()].reduce((sum, { length }) => sum + length, instanceSecret.length)
  if (bytes > MAX_PEER_DATA_BYTES) throw invalid(`more than ${MAX_PEER_DATA_BYTES} bytes of peer data`)
  return { cost, precedence: precedenceOf(request.precedence), instanceId, instanceSecret, peerData }
}

/** What an update changes. Throws AccessRefused. */
export function changesIn(
  request: Pick<UpdateTunnelTerminatorRequest, 'cost' | 'precedence' | 'updateCost' | 'updatePrecedence'>,
): Pick<TerminatorUpdate, 'cost' | 'precedence'> {
  const { cost, updateCost, updatePrecedence } = request
  if (updateCost) checkCost(cost)
  return {
    cost: updateCost ? cost : undefined,
    precedence: updatePrecedence ? precedenceOf(request.precedence) : undefined,
  }
}

/** Throws AccessRefused if terminators of other routers are among these, after its own are deleted. */
export async function removeAll(
  remove: (removal: TerminatorRemoval) => Promise<readonly string[]>,
  ids: readonly string[],
  routerId: string,
): Promise<void> {
  let foreign: string | undefined
  for (const page of pagesOf(ids, REMOVAL_PAGE))
    foreign = (await remove({ ids: page, routerId, by: actorOf(routerId) }))[0] ?? foreign
  if (foreign !== undefined)
    throw new AccessRefused(
      edgeErrorCode.invalidTerminator,
      `terminator ${foreign} belongs to another router`,
    )
}

export const countHealth = (passed: boolean): void =>
  metrics.healthChecks.inc({ result: passed ? 'passed' : 'failed' })

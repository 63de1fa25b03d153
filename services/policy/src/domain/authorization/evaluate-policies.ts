import { policiesAreShown } from '../effect.js'
import { type Endpoint, passes } from '../posture/evaluate-check.js'
import type { Check } from '../posture/posture-check.js'
import { emptyPosture, type PostureData } from '../posture/posture-data.js'
import type { State } from '../state.js'
import { requiredCheckIds } from '../state-queries.js'

/** One of the identity's endpoints: the one of an API session. */
export interface Requester {
  readonly identityId: string
  readonly apiSessionId: string
}

export interface Refusal {
  readonly policyId: string
  readonly checks: readonly Check[]
}

export const postureOf = ({ postureData }: State, identityId: string): PostureData =>
  postureData.get(identityId) ?? emptyPosture

/** A reported lapse has happened, also where the clock of this replica is behind. */
export const endpointOf = (
  state: State,
  { identityId, apiSessionId }: Requester,
  nowMs: number = Date.now(),
): Endpoint => ({
  data: postureOf(state, identityId),
  apiSessionId,
  nowMs: Math.max(nowMs, state.lapsedAtMs.get(identityId) ?? 0),
})

/** Whether the endpoint of an API session passes some check with one posture of its identity and not with the next. */
export function losesCheck(
  { checkContents }: Pick<State, 'checkContents'>,
  apiSessionId: string,
  before: PostureData,
  after: PostureData,
  nowMs: number = Date.now(),
): boolean {
  const pass = (check: Check, data: PostureData): boolean => passes(check, { data, apiSessionId, nowMs })
  return [...checkContents.values()].some(({ check }) => pass(check, before) && !pass(check, after))
}

/**
 * Clients with access tokens report their device to the routers that evaluate it, not to the controllers. The second
 * factor is passed here, whichever routers there are.
 */
export const isOfDevice = ({ typeId }: Pick<Check, 'typeId'>): boolean => typeId !== 'MFA'

export const requiredChecks = (state: State, policyId: string): Check[] =>
  requiredCheckIds(state, policyId).flatMap((id) => state.checkContents.get(id)?.check ?? [])

/**
 * Whether the evaluation of these policies changes only with changes that name the identity. False: one of them asks for
 * the second factor, which counts for one API session, and lapses by time.
 */
export const isLasting = (state: State, policyIds: readonly string[]): boolean =>
  policyIds.every((id) => requiredChecks(state, id).every(({ typeId }) => typeId !== 'MFA'))

/**
 * The policies whose checks the endpoint passes, and the checks that it fails of the others. `atRouters`: without those
 * that routers evaluate.
 */
export function evaluatePolicies(
  state: State,
  policyIds: readonly string[],
  requester: Requester,
  atRouters = false,
): { readonly passing: readonly string[]; readonly refusals: readonly Refusal[] } {
  if (!policiesAreShown(state)) return { passing: policyIds, refusals: [] } // no posture check exists
  const endpoint = endpointOf(state, requester)
  const passing: string[] = []
  const refusals: Refusal[] = []
  for (const policyId of policyIds) {
    const failed = requiredChecks(state, policyId).filter(
      (check) => !(atRouters && isOfDevice(check)) && !passes(check, endpoint),
    )
    if (failed.length === 0) passing.push(policyId)
    else refusals.push({ policyId, checks: failed })
  }
  return { passing, refusals }
}

import { policiesAreShown } from '../effect.js'
import { checksOf } from '../queries.js'
import type { State } from '../state.js'
import type { Check } from './check.js'
import { nothingSaid, type PostureData } from './data.js'
import { type Endpoint, passes } from './evaluate.js'

/** Who is asked: an identity, and one of its API sessions. */
export interface Asked {
  readonly identityId: string
  readonly apiSessionId: string
}

export interface Refusal {
  readonly policyId: string
  readonly checks: readonly Check[]
}

export const saidBy = ({ said }: State, identityId: string): PostureData =>
  said.get(identityId) ?? nothingSaid

export const endpointOf = (
  state: State,
  { identityId, apiSessionId }: Asked,
  nowMs: number = Date.now(),
): Endpoint => ({ data: saidBy(state, identityId), apiSessionId, nowMs })

export const contentsOf = (state: State, policyId: string): Check[] =>
  checksOf(state, policyId).flatMap((id) => state.checkContents.get(id)?.check ?? [])

/** Which of these policies let the endpoint through, and what it fails of the others. */
export function judge(
  state: State,
  policyIds: readonly string[],
  asked: Asked,
): { readonly passing: readonly string[]; readonly refusals: readonly Refusal[] } {
  if (!policiesAreShown(state)) return { passing: policyIds, refusals: [] } // nothing is asked of anybody
  const endpoint = endpointOf(state, asked)
  const passing: string[] = []
  const refusals: Refusal[] = []
  for (const policyId of policyIds) {
    const failed = contentsOf(state, policyId).filter((check) => !passes(check, endpoint))
    if (failed.length === 0) passing.push(policyId)
    else refusals.push({ policyId, checks: failed })
  }
  return { passing, refusals }
}

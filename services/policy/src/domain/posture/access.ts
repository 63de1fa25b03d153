import { requiring } from '../entities.js'
import type { AccessType } from '../policies.js'
import { grantingPolicies, isAdmin, maySee } from '../queries.js'
import type { State } from '../state.js'
import type { Check } from './check.js'
import { passes } from './evaluate.js'
import { endpointOf, type Requester, requiredChecks } from './judge.js'

/** Whether an access still exists, and the policy that grants it; empty: no policy does. */
export interface AccessState {
  readonly lost: boolean
  readonly granting: string
}

/** Decides about many held accesses of one moment. It reads the checks of each policy once. */
export function accessJudge(
  state: State,
): (asked: Requester, serviceId: string, type: AccessType) => AccessState {
  const checks = new Map<string, readonly Check[]>()
  const checksOf = (policyId: string): readonly Check[] => {
    const found = checks.get(policyId) ?? requiredChecks(state, policyId)
    checks.set(policyId, found)
    return found
  }
  return (asked, serviceId, type) => {
    const granting = grantingPolicies(state, asked.identityId, serviceId, type)
    const endpoint = endpointOf(state, asked)
    const passed = granting.find((policyId) => checksOf(policyId).every((check) => passes(check, endpoint)))
    if (passed !== undefined) return { lost: false, granting: passed }
    if (granting.length > 0) return { lost: true, granting: '' }
    // wire: an admin keeps its sessions when no policy grants them
    const { identityId } = asked
    const isKept = isAdmin(state, identityId) && maySee(state, { identityId, isAdmin: true }, serviceId)
    return { lost: !isKept, granting: '' }
  }
}

/** The service policies that require any of these posture checks. */
export function policiesRequiring(state: State, checkIds: readonly string[]): string[] {
  const numbers = checkIds.flatMap((id) => state.checks.numberOf(id) ?? [])
  return [...new Set(numbers.flatMap((number) => requiring(state, number)))]
}

import { requiring } from '../entity-mutators.js'
import { passes } from '../posture/evaluate-check.js'
import type { Check } from '../posture/posture-check.js'
import type { AccessType } from '../rows.js'
import type { State } from '../state.js'
import { grantingPolicies, isAdmin, maySee } from '../state-queries.js'
import { endpointOf, isOfDevice, type Requester, requiredChecks } from './evaluate-policies.js'

/** Whether an access is lost, and the policy that grants it; empty: no policy does. */
export interface AccessState {
  readonly lost: boolean
  readonly granting: string
}

/** Evaluates the access of sessions; `atRouters`: without the checks that routers evaluate. Reads the checks of each policy once, so it is valid until the next change. */
export function openAccessEvaluator(
  state: State,
): (requester: Requester, serviceId: string, type: AccessType, atRouters?: boolean) => AccessState {
  const checks = new Map<string, readonly Check[]>()
  const checksOf = (policyId: string): readonly Check[] => {
    const required = checks.get(policyId) ?? requiredChecks(state, policyId)
    checks.set(policyId, required)
    return required
  }
  return (requester, serviceId, type, atRouters = false) => {
    const granting = grantingPolicies(state, requester.identityId, serviceId, type)
    const endpoint = endpointOf(state, requester)
    const counts = (check: Check): boolean => (atRouters && isOfDevice(check)) || passes(check, endpoint)
    const passed = granting.find((policyId) => checksOf(policyId).every(counts))
    if (passed !== undefined) return { lost: false, granting: passed }
    if (granting.length > 0) return { lost: true, granting: '' }
    // wire: sessions of an admin stay when no policy grants them, until the service is deleted
    const { identityId } = requester
    const isKept = isAdmin(state, identityId) && maySee(state, { identityId, isAdmin: true }, serviceId)
    return { lost: !isKept, granting: '' }
  }
}

/** The service policies that require any of these posture checks. */
export function policiesRequiring(state: State, checkIds: readonly string[]): string[] {
  const numbers = checkIds.flatMap((id) => state.checks.numberOf(id) ?? [])
  return [...new Set(numbers.flatMap((number) => requiring(state, number)))]
}

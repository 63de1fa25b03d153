import type { endingServices, SchemaValue } from '@overlay/model'
import { GRACE_MS, timeoutOf } from '../posture/mfa-check.js'
import { type Check, NO_TIMEOUT } from '../posture/posture-check.js'
import type { EndpointState, PostureResponse } from '../posture/posture-data.js'
import type { State } from '../state.js'
import { linkingPolicies, type Viewer, visibleIds } from '../state-queries.js'
import { requiredChecks } from './evaluate-policies.js'

/**
 * The services that an endpoint, which has just been woken or unlocked, loses unless it passes the second factor again in
 * time. differs: only services of the caller.
 */
export function endingSoon(
  state: State,
  caller: Viewer,
  responses: readonly PostureResponse[],
  endpoint: EndpointState | undefined,
  nowMs: number = Date.now(),
): Omit<SchemaValue<typeof endingServices>[number], 'name'>[] {
  if (endpoint?.passedMfaAt === undefined) return []
  const events = responses.flatMap((response) => (response.typeId === 'ENDPOINT_STATE' ? [response] : []))
  const [woken, unlocked] = [events.some((one) => one.woken), events.some((one) => one.unlocked)]
  if (!woken && !unlocked) return []
  const passedMs = Date.parse(endpoint.passedMfaAt)
  const asks = (check: Check): boolean =>
    check.typeId === 'MFA' &&
    ((woken && check.promptOnWake === true) || (unlocked && check.promptOnUnlock === true)) &&
    !endsFirst(timeoutOf(check), passedMs, nowMs)
  return visibleIds(state, caller).flatMap((id) => {
    const checks = linkingPolicies(state, caller.identityId, id).flatMap(({ policyId }) =>
      requiredChecks(state, policyId).filter(asks),
    )
    if (checks.length === 0) return []
    const timeouts = checks.map(timeoutOf).filter((timeout) => timeout !== NO_TIMEOUT)
    const timeout = timeouts.length > 0 ? timeouts.reduce((least, one) => Math.min(least, one)) : NO_TIMEOUT
    return [{ id, postureQueryType: 'MFA', timeout, timeoutRemaining: GRACE_MS / 1000 }]
  })
}

/** The code itself ends before the grace does. */
const endsFirst = (timeout: number, passedMs: number, nowMs: number): boolean =>
  timeout !== NO_TIMEOUT && passedMs + timeout * 1000 - nowMs <= GRACE_MS

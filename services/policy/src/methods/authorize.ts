import { Fault, invalid, type Methods, notFound, type PolicyServiceService } from '@overlay/rpc'
import {
  endpointOf,
  evaluatePolicies,
  isLasting,
  type Refusal,
  type Requester,
} from '../domain/authorization/evaluate-policies.js'
import { failureOf } from '../domain/posture/describe-failure.js'
import type { AccessType } from '../domain/rows.js'
import { commonRouters, grantingPolicies, maySee, mayUse } from '../domain/state-queries.js'
import { saveFailedRequest } from '../store/failed-request.js'
import { accessTypeOf } from './encoding.js'
import type { MethodDeps } from './method-deps.js'

export const authorize =
  (deps: MethodDeps): Methods<PolicyServiceService>['authorize'] =>
  async ({ identityId, serviceId, access, isAdmin, apiSessionId, postureAtRouters }, context) => {
    const { engine } = deps
    const { state } = engine
    const type = accessTypeOf(access)
    await engine.waitFor(context.positions, context)
    await engine.ensureFresh(context)
    const requester = { identityId, apiSessionId }
    const verdict = () => {
      if (!maySee(state, { identityId, isAdmin }, serviceId)) throw notFound('service', serviceId)
      // wire: a service that is visible but not granted for this type answers 400 with a field error, not 404
      if (!mayUse(state, identityId, serviceId, type))
        throw invalid('ServiceId', 'service not found', serviceId)
      const linking = grantingPolicies(state, identityId, serviceId, type)
      return { ...evaluatePolicies(state, linking, requester), linking }
    }
    let { passing, refusals, linking } = verdict()
    if (passing.length === 0) {
      await engine.bestEffort(engine.catchUpOwn(context)) // posture submitted a moment ago may not be in memory yet
      ;({ passing, refusals, linking } = verdict())
    }
    const atRouters = postureAtRouters && passing.length === 0
    if (atRouters) ({ passing } = evaluatePolicies(state, linking, requester, true))
    if (passing.length === 0) throw await refusal(deps, requester, { serviceId, type }, refusals)
    const routerIds = commonRouters(state, identityId, serviceId)
    if (routerIds.length === 0) throw new Fault('NO_EDGE_ROUTERS_AVAILABLE')
    return {
      routerIds,
      policyIds: [...passing], // differs: the original names no policies while there is no posture check at all
      serviceName: engine.namesOf('services').get(serviceId) ?? '',
      positions: engine.positions(),
      lasts: !atRouters && isLasting(state, linking),
      postureAtRouters: atRouters,
    }
  }

/** Saves the failed request for administrators. The fault names the checks that the client does not pass. */
async function refusal(
  { changeLog, engine: { state, namesOf } }: MethodDeps,
  requester: Requester,
  { serviceId, type }: { readonly serviceId: string; readonly type: AccessType },
  refusals: readonly Refusal[],
): Promise<Fault> {
  const endpoint = endpointOf(state, requester)
  const request = {
    apiSessionId: requester.apiSessionId,
    policyFailures: refusals.map(({ policyId, checks }) => ({
      checks: checks.map((check) => failureOf(check, endpoint)),
      policyId,
      policyName: namesOf('service-policies').get(policyId) ?? '',
    })),
    serviceId,
    serviceName: namesOf('services').get(serviceId) ?? '',
    sessionType: type,
  }
  await saveFailedRequest(changeLog.db, requester.identityId, request)
  const ids = refusals.map(({ policyId }) => policyId)
  const failed = refusals.map(({ policyId, checks }) => [
    policyId,
    checks.map(({ id, typeId }) => ({ id, isPassing: false, typeId })),
  ])
  return new Fault(
    'INVALID_POSTURE',
    `Failed to pass posture checks for service policies: [${ids.join(' ')}]`,
    undefined,
    Object.fromEntries(failed),
  )
}

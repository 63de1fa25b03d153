import type { ChangeLog } from '@overlay/platform/change-log'
import { Fault } from '@overlay/rpc'
import type { AccessType } from '../domain/policies.js'
import { failureOf } from '../domain/posture/failure.js'
import { type Asked, endpointOf, type Refusal } from '../domain/posture/judge.js'
import type { Engine } from '../engine/engine.js'
import { rememberFailed } from '../store/failed-request.js'

/** Remembers for the admin what was asked and said, and tells the client which checks it does not pass. */
export async function refusedFor(
  { db }: ChangeLog,
  { state, namesOf }: Engine,
  asked: Asked,
  { serviceId, type }: { readonly serviceId: string; readonly type: AccessType },
  refusals: readonly Refusal[],
): Promise<Fault> {
  const endpoint = endpointOf(state, asked)
  const request = {
    apiSessionId: asked.apiSessionId,
    policyFailures: refusals.map(({ policyId, checks }) => ({
      checks: checks.map((check) => failureOf(check, endpoint)),
      policyId,
      policyName: namesOf('service-policies').get(policyId) ?? '',
    })),
    serviceId,
    serviceName: namesOf('services').get(serviceId) ?? '',
    sessionType: type,
  }
  await rememberFailed(db, asked.identityId, request)
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

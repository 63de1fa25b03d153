import { linksOf, postureCheck, type service, type ViewOf } from '@overlay/model'
import { policiesAreShown } from '../effect.js'
import { type Endpoint, passes } from '../posture/evaluate-check.js'
import { promptingTimes, timeoutOf, timeoutRemaining } from '../posture/mfa-check.js'
import { type Check, NO_TIMEOUT } from '../posture/posture-check.js'
import type { State } from '../state.js'
import { linkingPolicies } from '../state-queries.js'
import { endpointOf, type Requester, requiredChecks } from './evaluate-policies.js'

type PostureQueries = ViewOf<typeof service>['postureQueries']

/** The checks that a service requires of an endpoint, by policy, in wire shape: for one viewer and any number of services. */
export function postureQueries(state: State, requester: Requester): (serviceId: string) => PostureQueries {
  if (!policiesAreShown(state)) return () => []
  const endpoint = endpointOf(state, requester)
  const byPolicy = new Map<string, { isPassing: boolean; postureQueries: ReturnType<typeof queryOf>[] }>()

  const ofPolicy = (policyId: string) => {
    const cached = byPolicy.get(policyId)
    if (cached) return cached
    const queries = requiredChecks(state, policyId).map((check) => queryOf(check, endpoint))
    const fresh = { isPassing: queries.every(({ isPassing }) => isPassing), postureQueries: queries }
    byPolicy.set(policyId, fresh)
    return fresh
  }
  return (serviceId) =>
    linkingPolicies(state, requester.identityId, serviceId).map(({ policyId, type }) => ({
      policyId,
      policyType: type,
      ...ofPolicy(policyId),
    }))
}

function queryOf(check: Check, endpoint: Endpoint) {
  const { id, typeId, createdAt, tags } = check
  return {
    _links: linksOf(postureCheck, id),
    createdAt,
    id,
    isPassing: passes(check, endpoint),
    ...(typeId === 'PROCESS' && {
      process: { osType: check['process.osType'] ?? '', path: check['process.path'] ?? '' },
    }),
    processes: check.processes?.map(({ osType, path }) => ({ osType, path })) ?? null,
    queryType: typeId,
    tags,
    ...timesOf(check, endpoint),
  }
}

function timesOf(check: Check, { data, apiSessionId, nowMs }: Endpoint) {
  const { updatedAt } = check
  if (check.typeId !== 'MFA') return { timeout: NO_TIMEOUT, timeoutRemaining: NO_TIMEOUT, updatedAt }
  const state = data.apiSessions[apiSessionId]
  const times = [updatedAt, ...(state?.passedMfaAt ? promptingTimes(check, state) : [])]
  return {
    timeout: timeoutOf(check),
    timeoutRemaining: timeoutRemaining(check, state, nowMs),
    updatedAt: times.sort().at(-1),
  }
}

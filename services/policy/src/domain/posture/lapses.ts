import type { State } from '../state.js'
import type { Check } from './check.js'
import type { EndpointState } from './data.js'
import { lapsesOf } from './mfa.js'

/** Identities with an endpoint that stopped to pass a check at a time in (from, to], each with the last such time. */
export function lapsedBetween(
  { postureData, checkContents }: Pick<State, 'postureData' | 'checkContents'>,
  from: number,
  to: number,
): ReadonlyMap<string, number> {
  const checks = [...checkContents.values()].flatMap(({ check }) => (check.typeId === 'MFA' ? [check] : []))
  const lapsed = new Map<string, number>()
  if (checks.length === 0) return lapsed
  for (const [identityId, { apiSessions }] of postureData) {
    const times = Object.values(apiSessions)
      .flatMap((endpoint) => timesOf(checks, endpoint))
      .filter((at) => at > from && at <= to)
    if (times.length > 0)
      lapsed.set(
        identityId,
        times.reduce((last, at) => Math.max(last, at)),
      )
  }
  return lapsed
}

const timesOf = (checks: readonly Check[], endpoint: EndpointState): readonly number[] =>
  endpoint.passedMfaAt === undefined ? [] : checks.flatMap((check) => lapsesOf(check, endpoint))

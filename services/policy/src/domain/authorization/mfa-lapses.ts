import { lapsesOf, type MfaCheck, timeoutOf } from '../posture/mfa-check.js'
import type { Check } from '../posture/posture-check.js'
import type { PostureData } from '../posture/posture-data.js'
import type { State } from '../state.js'

/** The checks of the second factor by what decides when they lapse: each of them once. */
export function mfaTimings({ checkContents }: Pick<State, 'checkContents'>): readonly MfaCheck[] {
  const distinct = new Map([...checkContents.values()].flatMap(({ check }) => timingOf(check)))
  return [...distinct.keys()].sort().flatMap((key) => distinct.get(key) ?? [])
}

function timingOf(check: Check): (readonly [string, MfaCheck])[] {
  if (check.typeId !== 'MFA') return []
  const { promptOnWake, promptOnUnlock } = check
  const timing = { timeoutSeconds: timeoutOf(check), promptOnWake, promptOnUnlock }
  return [[JSON.stringify(timing), timing]]
}

/** The first time after `afterMs` at which an endpoint stops to pass one of the checks. */
export const nextLapse = (
  checks: readonly MfaCheck[],
  posture: PostureData,
  afterMs: number,
): number | undefined => least(lapsesIn(checks, posture).filter((at) => at > afterMs))

/** The last such time until `nowMs`. */
export const lastLapse = (
  checks: readonly MfaCheck[],
  posture: PostureData,
  nowMs: number,
): number | undefined =>
  lapsesIn(checks, posture)
    .filter((at) => at <= nowMs)
    .reduce<number | undefined>((last, at) => Math.max(last ?? at, at), undefined)

const lapsesIn = (checks: readonly MfaCheck[], { apiSessions }: PostureData): number[] =>
  Object.values(apiSessions).flatMap((endpoint) =>
    endpoint.passedMfaAt === undefined ? [] : checks.flatMap((check) => lapsesOf(check, endpoint)),
  )

const least = (times: readonly number[]): number | undefined =>
  times.reduce<number | undefined>((first, at) => Math.min(first ?? at, at), undefined)

import { type Check, NO_TIMEOUT } from './posture-check.js'

/**
 * Whether routers evaluate a check, too. Codes are accepted here, and lapse here; routers learn only of the waking and
 * unlocking of a device, which ask for another code.
 */
export const isForRouters = (check: Check | undefined): boolean =>
  check?.typeId !== 'MFA' || check.promptOnWake === true || check.promptOnUnlock === true

import type { EndpointState } from './posture-data.js'

/** After waking or unlocking, access goes on for this long without another code. */
export const GRACE_MS = 5 * 60_000

export type MfaCheck = Pick<Check, 'timeoutSeconds' | 'promptOnWake' | 'promptOnUnlock'>

export function passesMfa(check: MfaCheck, state: EndpointState | undefined, nowMs: number): boolean {
  return (
    state?.passedMfaAt !== undefined &&
    !isTimedOut(check, state, nowMs) &&
    passesEvent(check.promptOnWake, state.wokenAt, state, nowMs) &&
    passesEvent(check.promptOnUnlock, state.unlockedAt, state, nowMs)
  )
}

/** The event has not happened since the code was accepted, or so recently that another code may still follow. */
export function passesEvent(
  isAsked: boolean | null,
  happenedAt: string | undefined,
  { passedMfaAt }: EndpointState,
  nowMs: number,
): boolean {
  if (!isAsked) return true
  if (passedMfaAt === undefined) return false
  if (happenedAt === undefined) return true
  const happenedMs = Date.parse(happenedAt)
  return happenedMs < Date.parse(passedMfaAt) || nowMs - GRACE_MS < happenedMs
}

export const timeoutOf = ({ timeoutSeconds }: MfaCheck): number =>
  timeoutSeconds !== null && timeoutSeconds > 0 ? timeoutSeconds : NO_TIMEOUT

export function isTimedOut(check: MfaCheck, { passedMfaAt }: EndpointState, nowMs: number): boolean {
  const timeout = timeoutOf(check)
  return (
    timeout !== NO_TIMEOUT && (passedMfaAt === undefined || Date.parse(passedMfaAt) + timeout * 1000 < nowMs)
  )
}

/** The times at which the check begins to fail unless another code is accepted before. */
export function lapsesOf(check: MfaCheck, state: EndpointState): number[] {
  const passedMs = Date.parse(state.passedMfaAt ?? '')
  const timeout = timeoutOf(check)
  const events = eventsOf(check, state).filter((ms) => ms >= passedMs)
  return [
    ...(timeout === NO_TIMEOUT ? [] : [passedMs + timeout * 1000 + 1]),
    ...events.map((ms) => ms + GRACE_MS),
  ]
}

/** The last times at which the endpoint did what requires another code. */
export const promptingTimes = (check: MfaCheck, state: EndpointState): string[] =>
  [check.promptOnWake && state.wokenAt, check.promptOnUnlock && state.unlockedAt].filter(
    (at) => typeof at === 'string',
  )

const eventsOf = (check: MfaCheck, state: EndpointState): number[] =>
  promptingTimes(check, state).map((at) => Date.parse(at))

/** wire: 0 where no code was accepted; -1 where there is no time-out, though waking or unlocking may end the access. */
export function timeoutRemaining(check: MfaCheck, state: EndpointState | undefined, nowMs: number): number {
  const timeout = timeoutOf(check)
  if (timeout === NO_TIMEOUT) return NO_TIMEOUT
  if (state?.passedMfaAt === undefined) return 0
  const passedMs = Date.parse(state.passedMfaAt)
  const left = (from: number, ms: number): number => Math.max(0, Math.trunc((from + ms - nowMs) / 1000))
  const events = eventsOf(check, state).filter((ms) => ms > passedMs)
  return Math.min(left(passedMs, timeout * 1000), ...events.map((ms) => left(ms, GRACE_MS)))
}

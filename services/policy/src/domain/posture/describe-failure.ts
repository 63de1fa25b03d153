import type { Endpoint } from './evaluate-check.js'
import { isTimedOut, passesEvent, timeoutOf, timeoutRemaining } from './mfa-check.js'
import { type Check, processOf } from './posture-check.js'
import type { ProcessReport } from './posture-data.js'

type Describe = (check: Check, endpoint: Endpoint) => object

const describe: Readonly<Record<string, Describe>> = {
  OS: ({ operatingSystems }, { data: { os } }) => ({
    actualValue: { type: os?.type ?? '', version: os?.version ?? '' },
    expectedValue: operatingSystems,
  }),
  DOMAIN: ({ domains }, { data: { domain } }) => ({
    actualValue: domain?.domain ?? '',
    expectedValue: domains,
  }),
  MAC: ({ macAddresses }, { data: { mac } }) => ({
    actualValue: mac?.addresses ?? [],
    expectedValue: macAddresses,
  }),
  PROCESS: (check, { data }) => ({
    actualValue: actualOf(data.processes.findLast(({ checkId }) => checkId === check.id)),
    expectedValue: processOf(check),
  }),
  PROCESS_MULTI: ({ semantic, processes }, { data }) => ({
    actualValue: (processes ?? []).flatMap(({ path }) => {
      const report = data.processes.findLast((one) => one.path === path)
      return report ? [{ ...actualOf(report), path }] : []
    }),
    expectedValue: processes,
    semantic,
  }),
  MFA: (check, { data, apiSessionId, nowMs }) => {
    const state = data.apiSessions[apiSessionId] ?? {}
    const passedMfa = state.passedMfaAt !== undefined
    return {
      actualValue: {
        passedMfa,
        passedOnUnlock: passedMfa && passesEvent(check.promptOnUnlock, state.unlockedAt, state, nowMs),
        passedOnWake: passedMfa && passesEvent(check.promptOnWake, state.wokenAt, state, nowMs),
        timedOut: !passedMfa || isTimedOut(check, state, nowMs),
      },
      expectedValue: {
        passedMfa: true,
        passedOnUnlock: check.promptOnUnlock ?? false,
        passedOnWake: check.promptOnWake ?? false,
        timedOut: false,
      },
      criteria: {
        passedMfaAt: state.passedMfaAt ?? null,
        timeoutRemainingSeconds: timeoutRemaining(check, state, nowMs),
        timeoutSeconds: timeoutOf(check),
        unlockedAt: state.unlockedAt ?? null,
        wokenAt: state.wokenAt ?? null,
      },
    }
  },
}

const actualOf = (report: ProcessReport | undefined): object => ({
  hash: report?.hash ?? '',
  isRunning: report?.isRunning ?? false,
  signerFingerprints: report?.signerFingerprints ?? null,
})

/** What the check requires and what the endpoint has reported, for administrators. */
export function failureOf(check: Check, endpoint: Endpoint) {
  return {
    postureCheckId: check.id,
    postureCheckName: check.name,
    postureCheckType: check.typeId,
    ...describe[check.typeId]?.(check, endpoint),
  }
}

import { type Context, Fault, paused } from '@overlay/rpc'
import { type NoteRefusal, type PauseReports, pauseRows } from '@overlay/service'
import type { ChangeLog, RowChange } from '@overlay/store/change-log'
import {
  countRightGuess,
  countWrongGuess,
  guessHistory,
  type Pause,
  pauseOf,
  type Scope,
} from '@overlay/store/guesses'
import { seal, type Tx, unseal } from '@overlay/store/postgres'
import { type Passed, passedBy, type SecondFactor, stepsAround } from '../domain/second-factor.js'
import { guessOf, refuseLogin } from '../login/refusals.js'
import { lockSecondFactor, type StoredFactor, updateSecondFactor } from '../store/second-factors.js'

/** A factor after a code was accepted: without the recovery code, with the time step of the app's code. */
export interface UsedFactor extends SecondFactor {
  readonly usedSteps: readonly number[]
}

/** Second factors as they are stored: encrypted. */
export interface SecondFactors {
  seal(identityId: string, factor: SecondFactor): string
  open(stored: StoredFactor): SecondFactor
  /** Checks a code. Undefined: it is wrong. */
  check(stored: StoredFactor, code: string, accepted: AcceptedCode): UsedFactor | undefined
  /** Stores what remains after a code was accepted. */
  save(tx: Tx, stored: StoredFactor, factor: UsedFactor, isVerified?: boolean): Promise<RowChange>
}

/** Whether recovery codes are accepted besides those of the app. */
export type AcceptedCode = 'app' | 'any'

export function openSecondFactors(keySecret: string): SecondFactors {
  const sealFactor: SecondFactors['seal'] = (identityId, { secret, recoveryCodes }) =>
    seal(keySecret, identityId, JSON.stringify({ secret, recoveryCodes }))
  const open: SecondFactors['open'] = ({ identityId, sealed }) =>
    JSON.parse(unseal(keySecret, identityId, sealed)) as SecondFactor

  return {
    seal: sealFactor,
    open,

    check(stored, code, accepted) {
      const { secret, recoveryCodes } = open(stored)
      const at = Date.now()
      const passed = passedBy(code, { secret, recoveryCodes }, stored.usedSteps, at)
      if (!passed || (accepted === 'app' && 'recoveryCode' in passed)) return undefined
      return {
        secret,
        recoveryCodes:
          'recoveryCode' in passed
            ? recoveryCodes.filter((one) => one !== passed.recoveryCode)
            : recoveryCodes,
        usedSteps: stepsUsed(stored.usedSteps, passed, at),
      }
    },

    save: (tx, stored, factor, isVerified = stored.isVerified) =>
      updateSecondFactor(tx, stored, {
        isVerified,
        sealed: sealFactor(stored.identityId, factor),
        usedSteps: factor.usedSteps,
      }),
  }
}

function stepsUsed(before: readonly number[], passed: Passed, nowMs: number): number[] {
  const [oldest = 0] = stepsAround(nowMs)
  return [...before, ...('step' in passed ? [passed.step] : [])].filter((step) => step >= oldest)
}

/** A code of the caller: which codes are accepted, and the check of the stored factor. */
export interface UsedCode {
  readonly code: string
  readonly accepted: AcceptedCode
  readonly requires: (stored: StoredFactor | undefined) => StoredFactor
}

/** The changes that follow from an accepted code: by default the saved factor alone. */
type Work = (
  tx: Tx,
  factor: UsedFactor,
  save: (factor: UsedFactor, isVerified?: boolean) => Promise<RowChange>,
) => Promise<readonly RowChange[]>

interface CodeDeps {
  readonly changeLog: ChangeLog
  readonly secondFactors: SecondFactors
  readonly noteRefusal: NoteRefusal
  readonly pauseReports: PauseReports
}

type Tried =
  | { readonly stored: StoredFactor; readonly factor: UsedFactor }
  | { readonly pause: Pause }
  | { readonly begun: readonly Scope[] }

/**
 * Uses a code of the caller's second factor. Commits also after a wrong code, to count it. The lock of the factor puts
 * guesses in a sequence, so that a burst gets no more of them.
 * @throws Fault MFA_INVALID_TOKEN for a wrong code, SERVER_TOO_MANY_REQUESTS while guesses are paused
 */
export async function writeWithCode(
  { changeLog, secondFactors, noteRefusal, pauseReports }: CodeDeps,
  context: Context,
  { code, accepted, requires }: UsedCode,
  work: Work = async (_tx, factor, save) => [await save(factor)],
) {
  const { identityId, identityName, apiSessionId } = context.caller
  const account = { identityId, identityName, apiSessionId }
  const guess = guessOf('code', context, identityId)
  const { result, position } = await changeLog.write<Tried>(context, async (tx) => {
    const stored = requires(await lockSecondFactor(tx, identityId))
    const history = await guessHistory(tx, guess)
    const pause = pauseOf(guess.limits, history)
    if (pause) return { result: { pause }, changes: [] }
    const factor = code === '' ? undefined : secondFactors.check(stored, code, accepted)
    if (!factor) {
      const begun = code === '' ? [] : await countWrongGuess(tx, guess, history)
      return { result: { begun }, changes: pauseRows(guess, begun, account) }
    }
    if (history.isStale) await countRightGuess(tx, guess)
    const save: Parameters<Work>[2] = (next, isVerified) => secondFactors.save(tx, stored, next, isVerified)
    return { result: { stored, factor }, changes: await work(tx, factor, save) }
  })
  if ('factor' in result) return { ...result, position }
  const reason = 'pause' in result ? 'paused' : 'wrong code'
  refuseLogin(noteRefusal, context, { method: 'totp', reason, ...account })
  if ('pause' in result) throw paused(result.pause.seconds)
  pauseReports.report(context, guess, result.begun, account)
  throw new Fault('MFA_INVALID_TOKEN')
}

export function factorOf(stored: StoredFactor | undefined): StoredFactor {
  if (!stored) throw new Fault('NOT_FOUND')
  return stored
}

export function enrolledFactor(stored: StoredFactor | undefined): StoredFactor {
  if (!stored) throw new Fault('MFA_NOT_ENROLLED')
  return stored
}

export function verifiedFactor(stored: StoredFactor | undefined): StoredFactor {
  if (!stored?.isVerified) throw new Fault('NOT_FOUND')
  return stored
}

export function unverifiedFactor(stored: StoredFactor | undefined): StoredFactor {
  if (!stored || stored.isVerified) throw new Fault('NOT_FOUND')
  return stored
}

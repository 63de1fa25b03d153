import type { ChangeLog, RowChange } from '@overlay/platform/change-log'
import { seal, type Tx, unseal } from '@overlay/platform/postgres'
import type { NoteRefusal } from '@overlay/platform/service'
import { type Context, Fault } from '@overlay/rpc'
import { type Passed, passedBy, type SecondFactor, stepsAround } from '../domain/second-factor.js'
import { refuseLogin } from '../login/refuse-login.js'
import {
  countWrongCode,
  lockSecondFactor,
  type StoredFactor,
  updateSecondFactor,
} from '../store/second-factors.js'

/** A factor after a code was accepted: without the recovery code, with the time step of the app's code. */
export interface UsedFactor extends SecondFactor {
  readonly usedSteps: readonly number[]
}

/** Second factors as they are stored: encrypted, with a count of wrong codes. */
export interface SecondFactors {
  seal(identityId: string, factor: SecondFactor): string
  open(stored: StoredFactor): SecondFactor
  /** Checks a code. Undefined: it is wrong, which has been counted, or there is none. */
  useCode(tx: Tx, stored: StoredFactor, code: string, accepted: AcceptedCode): Promise<UsedFactor | undefined>
  /** Stores what remains after a code was accepted. */
  save(tx: Tx, stored: StoredFactor, factor: UsedFactor, isVerified?: boolean): Promise<RowChange>
}

/** Whether recovery codes are accepted beside those of the app. */
export type AcceptedCode = 'app' | 'any'

export function openSecondFactors(keySecret: string): SecondFactors {
  const sealFactor: SecondFactors['seal'] = (identityId, { secret, recoveryCodes }) =>
    seal(keySecret, identityId, JSON.stringify({ secret, recoveryCodes }))
  const open: SecondFactors['open'] = ({ identityId, sealed }) =>
    JSON.parse(unseal(keySecret, identityId, sealed)) as SecondFactor

  return {
    seal: sealFactor,
    open,

    async useCode(tx, stored, code, accepted) {
      if (stored.isPaused || code === '') return undefined
      const { secret, recoveryCodes } = open(stored)
      const at = Date.now()
      const passed = passedBy(code, { secret, recoveryCodes }, stored.usedSteps, at)
      if (!passed || (accepted === 'app' && 'recoveryCode' in passed)) {
        await countWrongCode(tx, stored)
        return undefined
      }
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
}

/** Uses a code of the caller's second factor. Commits also after a wrong code, to count it. */
export async function writeWithCode(
  { changeLog, secondFactors, noteRefusal }: CodeDeps,
  context: Context,
  { code, accepted, requires }: UsedCode,
  work: Work = async (_tx, factor, save) => [await save(factor)],
) {
  type Tried = { readonly stored: StoredFactor; readonly factor: UsedFactor | undefined }
  const { result, position } = await changeLog.write<Tried>(context, async (tx) => {
    const stored = requires(await lockSecondFactor(tx, context.caller.identityId))
    const factor = await secondFactors.useCode(tx, stored, code, accepted)
    if (!factor) return { result: { stored, factor }, changes: [] }
    const save: Parameters<Work>[2] = (next, isVerified) => secondFactors.save(tx, stored, next, isVerified)
    return { result: { stored, factor }, changes: await work(tx, factor, save) }
  })
  const { stored, factor } = result
  if (factor) return { stored, factor, position }
  const { identityId, identityName, apiSessionId } = context.caller
  const reason = stored.isPaused ? 'paused' : 'wrong code'
  refuseLogin(noteRefusal, context, { method: 'totp', reason, identityId, identityName, apiSessionId })
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

import type { ChangeLog, RowChange } from '@overlay/platform/change-log'
import { seal, type Tx, unseal } from '@overlay/platform/postgres'
import { type Context, Fault, type Position } from '@overlay/rpc'
import { type Passed, passedBy, type SecondFactor, stepsAround } from '../domain/second-factor.js'
import { countWrongCode, type StoredFactor, updateSecondFactor } from '../store/second-factors.js'

/** A factor after a code was accepted: without the recovery code, with the time step of the app's code. */
export interface UsedFactor extends SecondFactor {
  readonly usedSteps: readonly number[]
}

/** Second factors as they are stored: encrypted, with a count of wrong codes. */
export interface SecondFactors {
  seal(identityId: string, factor: SecondFactor): string
  open(stored: StoredFactor): SecondFactor
  /** Checks a code. Undefined: it is wrong, which has been counted. */
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
      if (stored.isPaused) return undefined
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

/** What a transaction did after it accepted a code. */
export interface CodeResult {
  readonly stored: StoredFactor
  readonly changes: readonly RowChange[]
}

/** Runs a transaction that uses a code. It commits also after a wrong code, for which `work` returns nothing. */
export async function writeWithCode(
  changeLog: ChangeLog,
  context: Context,
  work: (tx: Tx) => Promise<CodeResult | undefined>,
): Promise<{ readonly stored: StoredFactor; readonly position: Position | undefined }> {
  const { result, position } = await changeLog.write(context, async (tx) => {
    const outcome = await work(tx)
    return { result: outcome?.stored, changes: outcome?.changes ?? [] }
  })
  if (!result) throw new Fault('MFA_INVALID_TOKEN')
  return { stored: result, position }
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

import { randomBytes } from 'node:crypto'
import { generateSecret, generateSync } from 'otplib'
import { sameText } from './same-text.js'

/** The secret of an authenticator app, and the recovery codes of its owner. */
export interface SecondFactor {
  readonly secret: string // base32
  /** Each is accepted once, instead of a code. */
  readonly recoveryCodes: readonly string[]
}

/** An accepted code: a recovery code, or a code of the app with its time step. */
export type Passed = { readonly step: number } | { readonly recoveryCode: string }

const STEP_SECONDS = 30
const STEPS_AROUND = 2 // wire: codes of two steps before and after the present one are accepted
const RECOVERY_CODES = 20
const RECOVERY_LENGTH = 6
const BASE32 = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'

export const newSecondFactor = (): SecondFactor => ({
  secret: generateSecret(),
  recoveryCodes: newRecoveryCodes(),
})

export function newRecoveryCodes(): string[] {
  const codes = new Set<string>()
  while (codes.size < RECOVERY_CODES)
    codes.add([...randomBytes(RECOVERY_LENGTH)].map((byte) => BASE32[byte & 31]).join(''))
  return [...codes].sort()
}

/** differs: issuer and name are encoded. A `#` in a name would hide the secret. */
export function provisioningUrl(secret: string, issuer: string, name: string): string {
  const [of, label] = [issuer, name].map(encodeURIComponent)
  return `otpauth://totp/${of}:${label}?issuer=${of}&secret=${secret}`
}

/** Checks a code. Undefined: it is wrong. differs: a code of the app is accepted once. */
export function passedBy(
  code: string,
  { secret, recoveryCodes }: SecondFactor,
  usedSteps: readonly number[],
  nowMs: number,
): Passed | undefined {
  const recoveryCode = recoveryCodes.find((one) => sameText(one, code))
  if (recoveryCode !== undefined) return { recoveryCode }
  const step = stepsAround(nowMs).find(
    (one) => sameText(codeAt(secret, one), code) && !usedSteps.includes(one),
  )
  return step === undefined ? undefined : { step }
}

/** The time steps whose codes are accepted. */
export function stepsAround(nowMs: number): number[] {
  const now = Math.floor(nowMs / 1000 / STEP_SECONDS)
  return Array.from({ length: 2 * STEPS_AROUND + 1 }, (_, i) => now - STEPS_AROUND + i)
}

export const codeAt = (secret: string, step: number): string =>
  generateSync({ secret, epoch: step * STEP_SECONDS })

import { randomBytes } from 'node:crypto'

/** The rules of an auth policy for new passwords. */
export interface PasswordRules {
  readonly minPasswordLength: number
  readonly requireMixedCase: boolean
  readonly requireNumberChar: boolean
  readonly requireSpecialChar: boolean
}

declare const sound: unique symbol
/**
 * A password that keeps the rules. Only such a password can be hashed, so that no code that sets one omits the check.
 */
export type SoundPassword = string & { readonly [sound]: true }

const shortestName = 4
const shortestPassword = 5
const longest = 100

/** Where no auth policy applies yet. */
export const noRules: PasswordRules = {
  minPasswordLength: shortestPassword,
  requireMixedCase: false,
  requireNumberChar: false,
  requireSpecialChar: false,
}

/** Why a user name is refused, if it is. */
export function brokenByName(username: string): string | undefined {
  const reason = outside(username, shortestName)
  return reason && `username ${reason}`
}

/** Why a password is refused, if it is. */
export function brokenByPassword(password: string, rules: PasswordRules): string | undefined {
  const reason =
    outside(password, Math.max(rules.minPasswordLength, shortestPassword)) ?? lacking(password, rules)
  return reason && `password ${reason}`
}

/** The password, unless it breaks a rule. */
export function soundPassword(
  password: string,
  rules: PasswordRules,
  refusal: (reason: string) => Error = (reason) => new Error(reason),
): SoundPassword {
  const reason = brokenByPassword(password, rules)
  if (reason) throw refusal(reason)
  return password as SoundPassword
}

const randomLength = 24

/** A random password that keeps the rules. Throws if none is as long as they require. */
export function randomPassword(rules: PasswordRules): SoundPassword {
  for (;;) {
    const password = randomBytes(longest)
      .toString('base64url')
      .slice(0, Math.min(longest, Math.max(randomLength, rules.minPasswordLength)))
    const isOption = password.startsWith('-') // to many tools, which then refuse it
    const isLongEnough = password.length >= rules.minPasswordLength
    if (!isOption && !(isLongEnough && brokenByPassword(password, rules)))
      return soundPassword(password, rules)
  }
}

function outside(text: string, shortest: number): string | undefined {
  const { length } = [...text]
  if (length < shortest) return `should be at least ${shortest} chars long`
  if (length > longest) return `should be at most ${longest} chars long`
  return undefined
}

function lacking(password: string, rules: PasswordRules): string | undefined {
  if (rules.requireMixedCase && !(/\p{Lu}/u.test(password) && /\p{Ll}/u.test(password)))
    return 'must have upper and lower case letters'
  if (rules.requireNumberChar && !/\p{Nd}/u.test(password)) return 'must have a digit'
  if (rules.requireSpecialChar && !/[^\p{L}\p{Nd}]/u.test(password)) return 'must have a special character'
  return undefined
}

interface Cost {
  readonly memoryKib: number
  readonly passes: number
}

const shortestSalt = 16 // bytes
const phc = /^\$(argon2\w+)\$v=19\$m=(\d+),t=(\d+),p=\d+\$([^$]+)\$[^$]+$/

/**
 * Whether a hash in PHC string format is weaker than new ones of this cost: in one respect, and stronger in none. Lanes
 * do not count: they divide the same work.
 */
export function isWeaker(stored: string, { memoryKib, passes }: Cost): boolean {
  const [, algorithm, memory, time, salt = ''] = phc.exec(stored) ?? []
  const [storedKib, storedPasses] = [Number(memory), Number(time)]
  if (!(storedKib <= memoryKib && storedPasses <= passes)) return false
  if (storedKib < memoryKib || storedPasses < passes || algorithm !== 'argon2id') return true
  return Buffer.from(salt, 'base64').length < shortestSalt
}

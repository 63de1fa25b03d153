/** The rules of an auth policy for new passwords. */
export interface PasswordRules {
  readonly minPasswordLength: number
  readonly requireMixedCase: boolean
  readonly requireNumberChar: boolean
  readonly requireSpecialChar: boolean
}

export interface Broken {
  readonly field: 'username' | 'password'
  readonly reason: string
}

const shortestName = 4
const shortestPassword = 5
const longest = 100

/** The first rule that user name or password break. An absent one breaks none. */
export function brokenRule(
  username: string | undefined,
  password: string | undefined,
  rules: PasswordRules,
): Broken | undefined {
  if (username !== undefined) {
    const reason = outside(username, shortestName)
    if (reason) return { field: 'username', reason: `username ${reason}` }
  }
  if (password !== undefined) {
    const reason =
      outside(password, Math.max(rules.minPasswordLength, shortestPassword)) ?? lacking(password, rules)
    if (reason) return { field: 'password', reason: `password ${reason}` }
  }
  return undefined
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

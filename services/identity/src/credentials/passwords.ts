import { invalid } from '@overlay/rpc'
import { brokenRule, type PasswordRules } from '../domain/passwords.js'

/** Refuses a new user name or password that the auth policy does not allow. differs: a password is never sent back. */
export function checkPasswordRules(
  username: string | undefined,
  password: string | undefined,
  rules: PasswordRules,
): void {
  const broken = brokenRule(username, password, rules)
  if (broken) throw invalid(broken.field, broken.reason, broken.field === 'username' ? username : '')
}

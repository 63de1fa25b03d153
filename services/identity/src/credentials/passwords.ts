import { invalid } from '@overlay/rpc'
import { brokenByName, type PasswordRules, type SoundPassword, soundPassword } from '../domain/passwords.js'

export function refuseUsername(username: string): void {
  const reason = brokenByName(username)
  if (reason) throw invalid('username', reason, username)
}

/** Refuses a new password that the auth policy does not allow. differs: it is never sent back. */
export const allowedPassword = (password: string, rules: PasswordRules): SoundPassword =>
  soundPassword(password, rules, (reason) => invalid('password', reason, ''))

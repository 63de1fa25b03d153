import { userInfo } from 'node:os'

/** The user of this machine, as the audit names the author of a command. */
export function operator(): string {
  const { SUDO_USER: sudo } = process.env
  const uid = String(process.getuid?.() ?? '')
  let name = uid
  try {
    name = userInfo().username
  } catch {
    // the account has no name
  }
  return sudo ? `${sudo} as ${name}` : name
}

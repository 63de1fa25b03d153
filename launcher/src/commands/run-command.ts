import { userInfo } from 'node:os'
import { errorText } from '../system/error-text.js'

/**
 * Runs a command and ends this process, with `process.exitCode` if the command sets it.
 * @param failed begins the message of a failure, which ends the process with 1
 */
export async function runCommand(failed: string, run: () => Promise<void>): Promise<never> {
  try {
    await run()
  } catch (err) {
    console.error(`${failed}: ${errorText(err)}`)
    process.exit(1)
  }
  process.exit() // does not wait for open handles
}

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

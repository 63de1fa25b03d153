import { failureText } from '../error-text.js'

/**
 * Runs a command and ends this process, with `process.exitCode` if the command sets it.
 * @param failed begins the message of a failure, which ends the process with 1
 */
export async function runCommand(failed: string, run: () => Promise<void>): Promise<never> {
  try {
    await run()
  } catch (err) {
    console.error(`${failed}: ${failureText(err)}`)
    process.exit(1)
  }
  process.exit() // does not wait for open handles
}

/** The value of an option that is a number above 0. */
export function countOf(option: string, text: string): number {
  const count = Number(text)
  if (!Number.isSafeInteger(count) || count < 1)
    throw new Error(`${option}: '${text}' is not a number above 0`)
  return count
}

import { createInterface } from 'node:readline'
import { Writable } from 'node:stream'
import { parseArgs } from 'node:util'
import type { ResetOptions, ResetResult } from './reset-password.js'

/** @param command the command line up to the arguments */
export const passwordUsage = (command: string): string => `${command} [NAME] [options]

Sets a new password of the default administrator, or of the administrator NAME (user name or name of the identity),
while the product runs or is stopped. Prints a generated password once. DATABASE_URL must be set as for the product.

  --ask                    asks for the password instead; reads a line of standard input if that is no terminal
  --remove-second-factor   for a lost second factor
  --allow-passwords        changes the auth policy of the administrator, if that forbids passwords or requires an external
                           token; for everybody under this policy
  --username USERNAME      user name, if the administrator has no password yet`

export interface PasswordRequest
  extends Pick<ResetOptions, 'name' | 'removeSecondFactor' | 'allowPasswords'> {
  readonly wantsHelp: boolean
  readonly asks: boolean
  readonly username: string | undefined
}

/** Throws if the arguments of the command are wrong. */
export function readPasswordArguments(args: readonly string[]): PasswordRequest {
  const { values, positionals } = parseArgs({
    args: [...args],
    options: {
      ask: { type: 'boolean', default: false },
      'remove-second-factor': { type: 'boolean', default: false },
      'allow-passwords': { type: 'boolean', default: false },
      username: { type: 'string' },
      help: { type: 'boolean', default: false },
    },
    allowPositionals: true,
  })
  if (positionals.length > 1) throw new Error('only one NAME is possible; a password is never an argument')
  const [name] = positionals
  return {
    name,
    username: values.username ?? name,
    asks: values.ask,
    wantsHelp: values.help,
    removeSecondFactor: values['remove-second-factor'],
    allowPasswords: values['allow-passwords'],
  }
}

/** @param file that contains the password, too */
export function* passwordReport(
  {
    username,
    password,
    endedSessions,
    wasDisabled,
    hasSecondFactor,
    removedSecondFactor,
    secondSigner,
    changedPolicy,
  }: ResetResult,
  file?: string,
): Iterable<string> {
  yield `administrator  ${username}`
  yield `password       ${password ?? 'as given'}${file === undefined ? '' : `, also in ${file}`}`
  if (endedSessions > 0)
    yield `ended ${endedSessions} API session${endedSessions === 1 ? '' : 's'} of the former password`
  if (wasDisabled) yield 'enabled the identity, which was disabled'
  if (removedSecondFactor) yield 'removed the second factor'
  if (hasSecondFactor)
    yield 'logins still ask for the second factor; if it is lost, too: --remove-second-factor'
  if (changedPolicy !== undefined) yield `the auth policy '${changedPolicy}' allows passwords alone now`
  if (secondSigner !== undefined)
    yield `logins still ask for a token of the external signer '${secondSigner}'; if that is lost, too: --allow-passwords`
  yield 'it is valid within a second, if the product runs'
}

/** Asks twice without echo at a terminal; otherwise reads one line of standard input. */
export async function askPassword(): Promise<string> {
  const { stdin, stderr } = process
  const nowhere = new Writable({ write: (_chunk, _encoding, done) => done() })
  const input = createInterface({ input: stdin, output: nowhere, terminal: stdin.isTTY })
  const stop = new AbortController()
  input.once('SIGINT', () => stop.abort(new Error('stopped')))
  const lines = input[Symbol.asyncIterator]()
  const next = async (question: string): Promise<string> => {
    if (stdin.isTTY) stderr.write(question)
    const stopped = new Promise<never>((_, reject) => {
      stop.signal.addEventListener('abort', () => reject(stop.signal.reason), { once: true })
    })
    const { value, done } = await Promise.race([lines.next(), stopped])
    if (stdin.isTTY) stderr.write('\n')
    if (done || value === '') throw new Error('no password was given')
    return value
  }
  try {
    const password = await next('new password: ')
    if (stdin.isTTY && (await next('again: ')) !== password) throw new Error('the passwords differ')
    return password
  } finally {
    input.close()
  }
}

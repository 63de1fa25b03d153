import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { type ResetResult, resetPassword } from '@overlay/identity/init'
import { openLog } from '@overlay/platform/process'
import { exists } from '../home/exists.js'
import { passwordFile } from '../home/home-files.js'
import { requireInstallation } from '../home/installation.js'
import { writeInHome } from '../home/write-in-home.js'
import { requireMigrated, roleUrl } from '../servers/schemas.js'
import { readLauncherSettings } from '../settings.js'
import { askPassword } from './ask-password.js'
import { runCommand } from './command.js'
import { operator } from './operator.js'
import { withDatabase } from './with-database.js'

const usage = `npm run admin-password [-- [NAME] [options]]

Sets a new password of the default administrator, or of the administrator NAME (user name or name of the identity),
while the product runs or is stopped. Prints a generated password once. DATABASE_URL must be set as for the product.

  --ask                    asks for the password instead; reads a line of standard input if that is no terminal
  --remove-second-factor   for a lost second factor
  --allow-passwords        changes the auth policy of the administrator, if that forbids passwords or requires an external
                           token; for everybody under this policy
  --username USERNAME      user name, if the administrator has no password yet`

const print = (line: string): void => console.log(line)

await runCommand('password not changed', run)

async function run(): Promise<void> {
  const { values, positionals } = parseArgs({
    options: {
      ask: { type: 'boolean', default: false },
      'remove-second-factor': { type: 'boolean', default: false },
      'allow-passwords': { type: 'boolean', default: false },
      username: { type: 'string' },
      help: { type: 'boolean', default: false },
    },
    allowPositionals: true,
  })
  if (values.help) return print(usage)
  if (positionals.length > 1) throw new Error('only one NAME is possible; a password is never an argument')
  const [name] = positionals
  const settings = readLauncherSettings(process.env)
  const { home } = settings
  const secrets = await requireInstallation(home)
  const password = values.ask ? await askPassword() : undefined
  const result = await withDatabase(
    settings,
    () => undefined,
    async (ownerUrl) => {
      await requireMigrated(ownerUrl, 'identity')
      return resetPassword({
        databaseUrl: roleUrl(ownerUrl, 'identity', secrets),
        name,
        password,
        username: values.username ?? name ?? settings.adminUsername,
        removeSecondFactor: values['remove-second-factor'],
        allowPasswords: values['allow-passwords'],
        operator: operator(),
        log: openLog('launcher', { level: 'silent', format: 'json' }),
      })
    },
  )
  const file = await updateFile(home, result)
  for (const line of report(result, file)) print(line)
}

/** The file must not contain a password that is no longer valid. */
async function updateFile(
  home: string,
  { isDefaultAdmin, password }: ResetResult,
): Promise<string | undefined> {
  const file = join(home, passwordFile)
  if (!isDefaultAdmin || !(await exists(file))) return undefined
  if (password === undefined) await rm(file)
  else await writeInHome(home, passwordFile, `${password}\n`)
  return password === undefined ? undefined : file
}

function* report(
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
  file: string | undefined,
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

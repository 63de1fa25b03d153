import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { type ResetResult, resetPassword } from '@overlay/identity/init'
import {
  askPassword,
  passwordReport,
  passwordUsage,
  readPasswordArguments,
} from '@overlay/identity/password-command'
import { openLog } from '@overlay/process'
import { passwordFile, writeInHome } from '../home/home-files.js'
import { requireInstallation } from '../home/installation.js'
import { requireOwnSchema, roleUrl } from '../servers/schemas.js'
import { readLauncherSettings } from '../settings/settings.js'
import { exists } from '../system/files.js'
import { operator, runCommand } from './run-command.js'
import { withDatabase } from './with-database.js'

await runCommand('password not changed', async () => {
  const { asks, username, wantsHelp, ...request } = readPasswordArguments(process.argv.slice(2))
  if (wantsHelp) return console.log(passwordUsage('npm run admin-password --'))
  const settings = readLauncherSettings(process.env)
  const { home } = settings
  const secrets = await requireInstallation(home)
  const password = asks ? await askPassword() : undefined
  const result = await withDatabase(
    settings,
    () => undefined,
    async (ownerUrl) => {
      await requireOwnSchema(ownerUrl, 'identity', secrets)
      return resetPassword({
        ...request,
        databaseUrl: roleUrl(ownerUrl, 'identity', secrets),
        password,
        username: username ?? settings.adminUsername,
        operator: operator(),
        log: openLog('launcher', { level: 'silent', format: 'json' }),
      })
    },
  )
  for (const line of passwordReport(result, await updateFile(home, result))) console.log(line)
})

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

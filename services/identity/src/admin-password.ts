import { openLog, readSettings } from '@overlay/process'
import { withTlsDirectory } from '@overlay/store/postgres'
import {
  askPassword,
  passwordReport,
  passwordUsage,
  readPasswordArguments,
} from './password-command/password-command.js'
import { resetPassword } from './password-command/reset-password.js'
import { initSettings } from './settings.js'

const command = 'node services/identity/dist/admin-password.js'

try {
  const { asks, username, wantsHelp, ...request } = readPasswordArguments(process.argv.slice(2))
  if (wantsHelp) process.stdout.write(`${passwordUsage(command)}\n`)
  else {
    const settings = readSettings(initSettings, process.env)
    const result = await resetPassword({
      ...request,
      databaseUrl: withTlsDirectory(settings.databaseUrl, settings.databaseTls),
      username: username ?? settings.username,
      password: asks ? await askPassword() : undefined,
      operator: 'admin-password',
      log: openLog('identity', { level: 'silent', format: settings.logFormat }),
    })
    for (const line of passwordReport(result)) process.stdout.write(`${line}\n`)
  }
} catch (err) {
  process.stderr.write(`password not changed: ${(err as Error).message}\n`)
  process.exitCode = 1
}

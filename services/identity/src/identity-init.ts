import { openLog, readSettings, runProgram } from '@overlay/process'
import { withTlsDirectory } from '@overlay/store/postgres'
import { initIdentity } from './init.js'
import { initSettings } from './settings.js'

await runProgram('identity', async () => {
  const settings = readSettings(initSettings, process.env)
  const log = openLog('identity', { level: settings.logLevel, format: settings.logFormat })
  const { created, username, password } = await initIdentity({
    databaseUrl: withTlsDirectory(settings.databaseUrl, settings.databaseTls),
    username: settings.username,
    ...(settings.password !== undefined && { password: settings.password }),
    log,
  })
  // the password appears here only, never in the log
  process.stdout.write(
    `${JSON.stringify({ created, username, ...(password !== undefined && { password }) })}\n`,
  )
})

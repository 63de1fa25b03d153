import { withTlsDirectory } from '@overlay/platform/postgres'
import { openLog, readSettings, serviceSettings, setting } from '@overlay/platform/process'
import { initIdentity } from './init.js'

const { databaseUrl, databaseTls, logLevel, logFormat } = serviceSettings
const settings = readSettings(
  {
    databaseUrl,
    databaseTls,
    logLevel,
    logFormat,
    username: setting.text('OVERLAY_ADMIN_USERNAME', 'User name of the first administrator', {
      default: 'admin',
    }),
    password: setting.optional(
      setting.secret('OVERLAY_ADMIN_PASSWORD', 'Its password; without one it is made and told once', {
        min: 5,
      }),
    ),
  },
  process.env,
)
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

import { openLog, readSettings, runProgram } from '@overlay/process'
import { migrateSettings, schemasOf } from './migrate-settings.js'
import { MissingRights, tlsWarning, withTlsDirectory } from './postgres/migrate.js'
import { prepareAndMigrate } from './postgres/prepare-and-migrate.js'

await runProgram('migrate', async () => {
  const settings = readSettings(migrateSettings, process.env)
  const { databaseUrl, databaseTls, keySecret, identityUrl, pkiUrl, policyUrl, sessionsUrl } = settings
  const urls = { identity: identityUrl, pki: pkiUrl, policy: policyUrl, sessions: sessionsUrl }
  const schemas = schemasOf(databaseUrl, urls)
  const log = openLog('migrate', { level: settings.logLevel, format: settings.logFormat })
  const ownerUrl = withTlsDirectory(databaseUrl, databaseTls)
  const warning = tlsWarning(ownerUrl)
  if (warning !== undefined) log.warn({ warning }, 'database not verified')
  try {
    await prepareAndMigrate(`${import.meta.dirname}/../../..`, ownerUrl, schemas, {
      keySecret,
      onLocked: (schema) =>
        log.warn({ schema }, 'migration waits for a lock, of a dump or of another migration'),
    })
    log.info({ schemas: schemas.map(({ schema }) => schema) }, 'database is up to date')
  } catch (err) {
    process.exitCode = 1
    if (err instanceof MissingRights) {
      log.fatal({ err: err.cause }, err.message)
      process.stdout.write(withoutVerifiers(err.sql))
    } else log.fatal({ err }, 'database not migrated')
  }
})

/** Logs are read by more people than the database. */
function withoutVerifiers(sql: string): string {
  return sql.replaceAll(/password 'SCRAM-SHA-256\$[^']*'/g, "password '…'")
}

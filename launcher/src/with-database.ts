import { realpath } from 'node:fs/promises'
import { join } from 'node:path'
import { accountsOf } from './account.js'
import { exists } from './exists.js'
import { explainDatabase } from './external-servers.js'
import { openHome } from './home.js'
import { secretsFile } from './home-files.js'
import { runPathOf } from './run-directory.js'
import { runningLauncher } from './running-launcher.js'
import { readSecrets } from './secrets.js'
import { bundledUrl, launchPostgres } from './servers.js'
import { type LauncherSettings, logLimits } from './settings.js'

export type DatabaseSettings = Pick<
  LauncherSettings,
  'databaseUrl' | 'home' | 'logMib' | 'logFiles' | 'uid' | 'logLevel' | 'logFormat'
>

/**
 * Runs work with the URL of the owner of the product's database: that of `DATABASE_URL`, else that of the Postgres of
 * the running product. If the product does not run, its Postgres is started for the work. Throws if there is no
 * installation or no database in `OVERLAY_HOME`.
 */
export async function withDatabase<T>(
  settings: DatabaseSettings,
  print: (line: string) => void,
  work: (ownerUrl: string) => Promise<T>,
): Promise<T> {
  const { databaseUrl } = settings
  if (databaseUrl !== undefined) return explainDatabase(databaseUrl, () => work(databaseUrl))
  const accounts = accountsOf(settings.uid)
  const stored = await readSecrets(join(settings.home, secretsFile))
  if (!stored)
    throw new Error(
      `no installation in ${settings.home}: set OVERLAY_HOME, or DATABASE_URL if it has its own`,
    )
  if (!(await exists(join(settings.home, 'postgres'))))
    throw new Error(
      `OVERLAY_HOME ${settings.home} has no database of its own: set DATABASE_URL as for the product`,
    )
  if ((await runningLauncher(settings.home)) !== undefined) {
    const { id, postgresPassword } = stored.secrets
    const run = await runPathOf(await realpath(settings.home), id, accounts)
    return work(bundledUrl(join(run, 'postgres'), postgresPassword))
  }
  const home = await openHome(settings.home, accounts)
  try {
    const server = await launchPostgres(home, logLimits(settings), print)
    try {
      return await work(server.url)
    } finally {
      await server.stop()
    }
  } finally {
    await home.release()
  }
}

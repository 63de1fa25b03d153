import { realpath } from 'node:fs/promises'
import { join } from 'node:path'
import { openHome } from '../home/home.js'
import { requireInstallation, runningLauncher } from '../home/installation.js'
import { runPathOf } from '../home/run-directory.js'
import { explainDatabase, refuseNewDatabase } from '../servers/external-servers.js'
import { bundledUrl, withPostgres } from '../servers/launch-servers.js'
import { type LauncherSettings, logLimits } from '../settings/settings.js'
import { accountsOf } from '../system/account.js'
import { exists } from '../system/files.js'

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
  const { id, postgresPassword } = await requireInstallation(settings.home)
  if (!(await exists(join(settings.home, 'postgres'))))
    throw new Error(
      `OVERLAY_HOME ${settings.home} has no database of its own: set DATABASE_URL as for the product`,
    )
  const accounts = accountsOf(settings.uid)
  if ((await runningLauncher(settings.home)) !== undefined) {
    const run = await runPathOf(await realpath(settings.home), id, accounts)
    return whileRunning(() => work(bundledUrl(join(run, 'postgres'), postgresPassword)))
  }
  await refuseNewDatabase(settings.home, databaseUrl)
  const home = await openHome(settings.home, accounts)
  try {
    return await withPostgres(home, logLimits(settings), print, work)
  } finally {
    await home.release()
  }
}

/** Says what to do while the launcher runs and its Postgres does not. */
async function whileRunning<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (err) {
    if ((err as NodeJS.ErrnoException).syscall !== 'connect') throw err
    throw new Error('the product is starting or stopping: try again when that is done', { cause: err })
  }
}

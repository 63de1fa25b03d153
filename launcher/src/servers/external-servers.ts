import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { probeBus } from '@overlay/store/change-log'
import { isUnavailable, MissingRights, withClient } from '@overlay/store/postgres/migrate'
import type { Home } from '../home/home.js'
import { caFile } from '../home/home-files.js'
import { readStatusRecord } from '../home/status-record.js'
import { DATABASE_RETRY_MS } from '../limits.js'
import { errorText } from '../system/error-text.js'
import { exists } from '../system/files.js'
import { busProblem, databaseProblem } from './connect-problem.js'

const sqlFile = 'prepare-database.sql'

/**
 * Runs work that prepares a database of DATABASE_URL. The error of a database that cannot be used says what to do; the
 * SQL for an administrator is in a file of the home.
 */
export async function onDatabase<T>(
  url: string,
  home: Pick<Home, 'path' | 'write'>,
  work: () => Promise<T>,
): Promise<T> {
  try {
    const result = await explainDatabase(url, async () => {
      await withClient(url, async () => undefined)
      return work()
    })
    await rm(home.path(sqlFile), { force: true })
    return result
  } catch (err) {
    if (err instanceof MissingRights) {
      await home.write(sqlFile, err.sql)
      const { hostname, port, pathname } = new URL(url)
      const database = decodeURIComponent(pathname.slice(1))
      throw new Error(
        `the user of DATABASE_URL may not create schemas and roles: run psql -h ${hostname} -p ${port || 5432} -U ADMINISTRATOR -d ${database} -f '${home.path(sqlFile)}', with an administrator of this server, then start again`,
      )
    }
    throw err
  }
}

/** How the status of a start describes its database, without secrets. */
export function databaseText(databaseUrl: string | undefined): string {
  if (databaseUrl === undefined) return 'run by the launcher'
  const { host, pathname } = new URL(databaseUrl)
  return `${external}${host}${pathname}`
}

/** Without DATABASE_URL, refuses to create a database for a home that has used another one, or has lost its own. */
export async function refuseNewDatabase(home: string, databaseUrl: string | undefined): Promise<void> {
  const directory = join(home, 'postgres')
  if (databaseUrl !== undefined || (await exists(join(directory, 'data/PG_VERSION')))) return
  const record = await readStatusRecord(home)
  const last = record?.database
  if (last?.startsWith(external))
    throw new Error(
      `DATABASE_URL is not set, and the last start used ${last.slice(external.length)}: set it, or set OVERLAY_HOME to a new directory to begin an empty network`,
    )
  // both are written when the database is complete, so a first start that failed before can be repeated
  if (record || (await exists(join(home, caFile))))
    throw new Error(
      `there is no database in ${directory}, and this home has had one: mount the directory, or restore a backup; or set OVERLAY_HOME to a new directory to begin an empty network`,
    )
}

const external = 'external: '

/** Runs work that connects to the database of DATABASE_URL. The error of a failed connection says what to do. */
export async function explainDatabase<T>(url: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (err) {
    const problem = err instanceof MissingRights ? undefined : databaseProblem(err, url)
    if (problem === undefined && isUnavailable(err)) throw new DatabaseAway(errorText(err))
    if (problem === undefined) throw err
    throw problem.isWrongSetting ? new Error(problem.reason) : new DatabaseAway(problem.reason)
  }
}

/** Runs work that connects to the Postgres of the launcher, which is started again when it ends. */
export async function explainOwnDatabase<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (err) {
    if (!isUnavailable(err) || databaseProblem(err, 'postgres:///')?.isWrongSetting) throw err // it refuses the role, or its disk is full
    throw new DatabaseAway(`Postgres of OVERLAY_HOME does not answer (${errorText(err)})`)
  }
}

/** The database may be back later. */
class DatabaseAway extends Error {}

/**
 * Repeats work of `explainDatabase` or `explainOwnDatabase` while the database is unavailable: after a power cut, its machine
 * may start later, and a busy machine may not answer in time.
 */
export async function untilDatabase<T>(print: (line: string) => void, work: () => Promise<T>): Promise<T> {
  let printed: string | undefined
  for (;;) {
    try {
      return await work()
    } catch (err) {
      if (!(err instanceof DatabaseAway)) throw err
      if (err.message !== printed) print(`waiting for the database: ${err.message}`)
      printed = err.message
      await pause(DATABASE_RETRY_MS)
    }
  }
}

/** Refuses a bus that never admits the processes. One that may come later is a warning, as the product works without. */
export async function checkBus(
  urls: string,
  tls: string | undefined,
  print: (line: string) => void,
): Promise<void> {
  try {
    await probeBus(urls, { tls })
  } catch (err) {
    const { reason, isWrongSetting } = busProblem(err, urls)
    if (isWrongSetting) throw new Error(reason)
    print(`warning: ${reason}; going on without it, changes through other gateways take up to 2 s`)
  }
}

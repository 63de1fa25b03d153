import { rm } from 'node:fs/promises'
import { probeBus } from '@overlay/platform/change-log'
import { MissingRights, withClient } from '@overlay/platform/postgres/migrate'
import { busProblem, databaseProblem } from './connect-problem.js'
import type { Home } from './home.js'

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

/** Runs work that connects to the database of DATABASE_URL. The error of a failed connection says what to do. */
export async function explainDatabase<T>(url: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (err) {
    const problem = err instanceof MissingRights ? undefined : databaseProblem(err, url)
    if (problem === undefined) throw err
    throw new Error(problem)
  }
}

/** Refuses a bus that never admits the processes. One that may come later is a warning, as the product works without. */
export async function checkBus(urls: string, print: (line: string) => void): Promise<void> {
  try {
    await probeBus(urls)
  } catch (err) {
    const { reason, isWrongSetting } = busProblem(err, urls)
    if (isWrongSetting) throw new Error(reason)
    print(`warning: ${reason}; going on without it, changes through other gateways take up to 2 s`)
  }
}

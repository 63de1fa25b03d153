import { testDatabase } from '@overlay/launcher/testing'
import { openLog } from '@overlay/process'
import { type ChangeLog, noBus, openChangeLog } from '@overlay/store/change-log'
import { type Database, openDatabase } from '@overlay/store/postgres'
import sql from 'sql-template-tag'

export const log = openLog('sessions', { level: 'silent', format: 'json' })

/** The schema of this service with its change log, dropped at the end. */
export async function startStore(): Promise<AsyncDisposable & { readonly changeLog: ChangeLog }> {
  const database = await testDatabase('sessions')
  const db = openDatabase(database.urlOf('sessions'), 'sessions')
  const changeLog = await openChangeLog(db, noBus, log)
  return {
    changeLog,
    async [Symbol.asyncDispose]() {
      await changeLog[Symbol.asyncDispose]()
      await db[Symbol.asyncDispose]()
      await database[Symbol.asyncDispose]()
    },
  }
}

/** Resolves when a transaction waits for a lock. */
export async function waitingFor(db: Database): Promise<void> {
  for (;;) {
    const { rowCount } = await db.query(sql`
      select from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`)
    if (rowCount) return
  }
}

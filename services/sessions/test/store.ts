import { testDatabase } from '@overlay/launcher/testing'
import { type History, noBus, openDatabase, openHistory, openLog } from '@overlay/platform'

export const log = openLog('sessions', { level: 'silent', format: 'json' })

/** The schema of this service with its history, dropped at the end. */
export async function startStore(): Promise<AsyncDisposable & { readonly history: History }> {
  const database = await testDatabase('sessions')
  const db = openDatabase(database.urlOf('sessions'), 'sessions')
  const history = await openHistory(db, noBus, log)
  return {
    history,
    async [Symbol.asyncDispose]() {
      await history[Symbol.asyncDispose]()
      await db[Symbol.asyncDispose]()
      await database[Symbol.asyncDispose]()
    },
  }
}

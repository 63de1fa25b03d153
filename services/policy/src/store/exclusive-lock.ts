import { type LockConnection, openLockConnection } from '@overlay/store/postgres'
import type { QueryResultRow } from 'pg'
import type { Sql } from 'sql-template-tag'

/** A lock that one replica holds at a time. A statement on its connection is run by the holder, or not at all. */
export interface ExclusiveLock extends AsyncDisposable {
  /** True: this replica holds the lock, now or already. Never throws: without a database no replica holds it. */
  attempt(): Promise<boolean>
  isHeld(): boolean
  /** Fails, and gives up the lock, when the statement does. */
  query<Row extends QueryResultRow>(query: Sql): Promise<readonly Row[]>
}

export function openExclusiveLock(url: string, schema: string, name: string): ExclusiveLock {
  const lockName = `${schema} ${name}`
  let connection: LockConnection | undefined
  let isHolder = false

  const isHeld = (): boolean => isHolder && connection?.lost.aborted === false
  const close = async (): Promise<void> => {
    const closing = connection
    connection = undefined
    isHolder = false
    await closing?.[Symbol.asyncDispose]()
  }
  const abandon = (): void => void close().catch(() => undefined) // it is broken already

  return {
    isHeld,
    async attempt() {
      if (isHeld()) return true
      if (connection?.lost.aborted) abandon()
      try {
        connection ??= await openLockConnection(url, schema, {
          applicationName: lockName,
          synchronousCommit: false, // a row that is lost counts as a change that was missed, and is replaced
        })
        isHolder = await connection.tryLock(lockName)
      } catch {
        abandon()
      }
      return isHeld()
    },
    async query<Row extends QueryResultRow>(query: Sql) {
      if (!connection || !isHeld()) throw new Error('the lock is not held')
      try {
        return await connection.query<Row>(query)
      } catch (err) {
        abandon()
        throw err
      }
    },
    [Symbol.asyncDispose]: close,
  }
}

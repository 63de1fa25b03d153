import type pg from 'pg'
import type { Sql } from 'sql-template-tag'

/** A pool or a transaction. */
export interface Db {
  /**
   * With a name the server keeps the plan from the first use on. Without one it keeps the plan of texts that are used
   * often: of few texts shaped by clients with a session, of none shaped by clients without. Each name has one text.
   * Statements list their columns.
   */
  query<Row extends pg.QueryResultRow = pg.QueryResultRow>(
    query: Sql,
    name?: string | typeof ofClients | typeof ofStrangers,
  ): Promise<pg.QueryResult<Row>>
}

/** In place of a name: a client with a session shapes the text. */
export const ofClients = Symbol('of clients')

/** In place of a name: a client without a session shapes the text, which gets no name. */
export const ofStrangers = Symbol('of strangers')

/** A Db inside a transaction, for functions that write. */
export interface Tx extends Db {
  readonly inTransaction: true
}

export interface Database extends Db, AsyncDisposable {
  readonly schema: string
  /**
   * Commits when `work` returns, rolls back when it throws. The caller's deadline reaches the server. After a deadlock
   * or a serialization failure `work` runs a second time, in a new transaction, and again after the administrator has
   * ended its connection: it must have no effects outside of it.
   */
  transaction<T>(deadline: Date | undefined, work: (tx: Tx) => Promise<T>): Promise<T>
  /**
   * Runs `work` while its connection holds the advisory lock of this name, with no transaction open. What `work` writes
   * on the connection is written by the holder, or not at all.
   */
  withAdvisoryLock<T>(name: string, work: (connection: LockedConnection) => Promise<T>): Promise<T>
}

/** The connection that holds an advisory lock. */
export interface LockedConnection extends Db {
  /** As `Database.transaction`, without a deadline. */
  transaction<T>(work: (tx: Tx) => Promise<T>): Promise<T>
}

import type { Change, Position } from '@overlay/rpc'
import type { Tx } from '../postgres/database.js'
import type { RowChange } from './append.js'
import type { LoadedRows } from './loaded-rows.js'

/**
 * The effects of another service's changes on our rows, in the transaction that saves the position. The row changes
 * that a function returns are appended to our change log.
 */
export interface Effects {
  readonly kinds: readonly string[]
  /** False: the change has no effect here, and needs no transaction. Absent: all changes may have effects. */
  concerns?(change: Change): boolean
  apply(tx: Tx, changes: readonly Change[], upto: Position): Promise<readonly RowChange[]>
  /** In place of `apply` where the row cannot be read, or `apply` fails: does what is safe. Absent: skips the change. */
  unknown?(tx: Tx, change: Change, upto: Position): Promise<readonly RowChange[]>
  /**
   * All rows: at the first start, after a restored backup, or when too far behind. Rows that were deleted meanwhile are
   * missing among them; there is no change for them.
   */
  reload(tx: Tx, rows: LoadedRows, upto: Position): Promise<readonly RowChange[]>
  /** Called after each write of the two, also after one that failed: only the answer to its commit may be lost. */
  committed?(): void
}

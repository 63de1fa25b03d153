import type { Field, Tags } from '@overlay/model'
import type { Tx } from '../postgres/database.js'
import type { Kind } from './kind.js'
import type { AnyRow, AnyValues } from './row.js'
import type { WriteContext } from './seams.js'

/** What a write leaves of its row. */
export interface NextRow {
  readonly values: AnyValues
  readonly tags: Tags
}

/** One uniform write. */
export interface WriteRequest {
  readonly operation: 'create' | 'update' | 'delete'
  readonly kind: Kind
  readonly id: string
  /** The written fields, with their values. */
  readonly members: readonly (readonly [Field, unknown])[]
  /** How messages call the row if it does not exist. */
  readonly called: string
  /** The size of the body. */
  readonly bytes: number
  /**
   * Refuses with a Fault, or returns what to write; null: nothing, the row is deleted. `before` is null for a create. May
   * run several times.
   */
  step(tx: Tx, before: AnyRow | null, writing: Omit<WriteContext, 'isWritten'>): Promise<NextRow | null>
}

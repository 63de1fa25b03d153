import type { Entity, Field, RowOf, Tags } from '@overlay/model'
import type { Tx } from '../postgres/database.js'
import type { Kind } from './kind.js'
import type { AnyRow, AnyValues } from './row.js'
import type { WriteContext } from './seams.js'

/** What a write leaves of its row. */
export interface NextRow {
  readonly values: AnyValues
  readonly tags: Tags
  /** The members that an update changes. */
  readonly touched: ReadonlySet<string>
}

/** One uniform write, for either way to do it. */
export interface WriteRequest {
  readonly operation: 'create' | 'update' | 'delete'
  readonly kind: Kind
  readonly id: string
  /** The written fields, with their values. */
  readonly members: readonly (readonly [Field, unknown])[]
  /** How messages call the row if it does not exist. */
  readonly called: string
  /**
   * Refuses with a Fault, or returns what to write; null: nothing, the row is deleted. `before` is null for a create. May
   * run several times.
   */
  step(tx: Tx, before: AnyRow | null, writing: Writing): Promise<NextRow | null>
}

/** The context of a seam, but for what the request sets. */
export type Writing = Omit<WriteContext, 'isWritten'>

/** Rows of this schema by their ids. */
export type Named = <E extends Entity>(
  entity: E,
  ids: readonly string[],
) => Promise<ReadonlyMap<string, RowOf<E>>>

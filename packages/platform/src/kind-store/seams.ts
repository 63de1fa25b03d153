import type { Entity, Filter, RowOf, ValuesOf, ViewOf } from '@overlay/model'
import type { Caller, Context, Perspective } from '@overlay/rpc'
import type { Sql } from 'sql-template-tag'
import type { RowChange } from '../change-log/change-log.js'
import type { Db, Tx } from '../postgres/database.js'
import type { Exists } from './references.js'

/** How rows are about to be shown. */
export interface ViewRequest {
  readonly context: Context
  readonly caller: Caller
  readonly perspective: Perspective | undefined
  /** detail: one entity by id. list: the collection itself. linked: rows of a linked list, or picked by role. */
  readonly shape: 'detail' | 'list' | 'linked'
}

/** What a delete may do beside its own row. */
export interface DeleteContext {
  /** Another row changed in the same transaction. */
  also(change: RowChange): void
}

/** The same of a create or an update. */
export interface WriteContext extends DeleteContext {
  readonly context: Context
  /** Whether what the written members name exists. It is locked until the commit. */
  readonly exists: Exists
  /** Whether the request sets the member. */
  isWritten(name: string): boolean
}

/** All that a kind may add to the uniform operations. */
export interface Seams<E extends Entity, Joined extends object = object, V extends object = ViewOf<E>> {
  /** Which rows this caller sees, besides the filter. */
  scope?(caller: Caller, perspective?: Perspective): Sql
  /** What a filter says about sets that are no columns, said by columns. */
  filter?(filter: Filter, context: Context): Promise<Filter>
  /** What the view needs of other tables of the schema, as SQL over the kind's table. */
  readonly joined?: { readonly [Name in keyof Joined]: Sql }
  /** The members that the definition `shows`, for a whole page at once, in its order. */
  view?(
    db: Db,
    rows: readonly (RowOf<E> & Joined)[],
    reading: ViewRequest,
  ): Promise<readonly Declared<V, E>[]>
  /**
   * In the transaction, before the row is written: refuse with a Fault, or derive columns. It asks no other service, and
   * locks in the order of references.ts.
   */
  writing?(
    tx: Tx,
    next: ValuesOf<E> & { readonly id: string },
    before: RowOf<E> | null,
    writing: WriteContext,
  ): Promise<Partial<ValuesOf<E>>>
  /** In the transaction, before the row goes: refuse, or take along what hangs on it. */
  deleting?(tx: Tx, row: RowOf<E>, deleting: DeleteContext): Promise<void>
}

/** Names of entities, for references and role lists. Ids that nobody knows are missing from the answer. */
export type Names = (
  kind: string,
  ids: readonly string[],
  context: Context,
) => Promise<ReadonlyMap<string, string>>

/** A view without members that the definition does not show. */
type Declared<V, E extends Entity> = V & { readonly [M in Undeclared<V, ViewOf<E>>]: never }
type Undeclared<V, Shown> = Exclude<MemberOf<V>, MemberOf<Shown>>
type MemberOf<V> = V extends unknown ? keyof V : never // of any form of a union

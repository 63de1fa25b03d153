import type { Entity, Filter, RowOf, ValuesOf, ViewOf } from '@overlay/model'
import type { Caller, Context, Perspective } from '@overlay/rpc'
import type { Sql } from 'sql-template-tag'
import type { RowChange } from '../change-log/change-log.js'
import type { Db, Tx } from '../postgres/database.js'

/** How rows will be shown. */
export interface ViewRequest {
  readonly context: Context
  readonly caller: Caller
  readonly perspective: Perspective | undefined
  /** detail: one entity by id. list: the collection itself. linked: rows of a linked list, or picked by role. */
  readonly shape: 'detail' | 'list' | 'linked'
}

/** The context of a delete. */
export interface DeleteContext {
  /** Adds the change of another row of the same transaction. */
  also(change: RowChange): void
}

/** What a write refers to, locked until the commit. */
export interface LockedReferences {
  /** Whether an entity exists to which a written member refers. */
  exists(kind: string, id: string): boolean
  /** A row of this schema to which a written or a fixed member refers. */
  named<E extends Entity>(entity: E, id: string): RowOf<E> | undefined
}

/** The context of a create or an update. */
export interface WriteContext extends DeleteContext, LockedReferences {
  readonly context: Context
  /** Whether the request sets the member. */
  isWritten(name: string): boolean
}

/** What a kind may add to the uniform operations. */
export interface Seams<
  E extends Entity,
  Joined extends object = object,
  V extends object = ViewOf<E>,
  M extends string = never,
> {
  /** The rows that this caller may see. */
  scope?(caller: Caller, perspective?: Perspective): Sql
  /** Rewrites comparisons of sets that are not columns into comparisons of columns. */
  filter?(filter: Filter, context: Context): Promise<Filter>
  /**
   * Members of the answer as JSON text that SQL over the kind's table computes, in the order of the answer; null: left
   * out. The view returns the other members that the definition shows.
   */
  readonly members?: Readonly<Record<M, Sql>>
  /** Other values that the view needs, as SQL over the kind's table. */
  readonly joined?: { readonly [Name in keyof Joined]: Sql }
  /** The members of rows that the view reads; the others are undefined. Absent: all. */
  readonly viewed?: readonly (keyof (RowOf<E> & Joined) & string)[]
  /** The members that the definition `shows`, for a whole page at once, in the order of its rows. */
  view?(
    db: Db,
    rows: readonly (RowOf<E> & Joined)[],
    reading: ViewRequest,
  ): Promise<readonly ([M] extends [never] ? Declared<V, E> : Omit<V, M>)[]>
  /**
   * In the transaction, before the row is written: refuses with a Fault, derives columns, or changes other rows. Calls no
   * other service, and locks in the order of references.ts. Concurrent writes of a kind share transactions, and what
   * uses `tx` costs each of them a round trip.
   */
  writing?(
    tx: Tx,
    next: ValuesOf<E> & { readonly id: string },
    before: RowOf<E> | null,
    writing: WriteContext,
  ): Promise<Partial<ValuesOf<E>>>
  /** In the transaction, before the row is deleted: refuses, or deletes what depends on it. */
  deleting?(tx: Tx, row: RowOf<E>, deleting: DeleteContext): Promise<void>
}

/** Names of entities, for references and role lists. Unknown ids are missing from the result. */
export type Names = (
  kind: string,
  ids: readonly string[],
  context: Context,
) => Promise<ReadonlyMap<string, string>>

/** A view without members that the definition does not show. */
type Declared<V, E extends Entity> = V & { readonly [M in Undeclared<V, ViewOf<E>>]: never }
type Undeclared<V, Shown> = Exclude<MemberOf<V>, MemberOf<Shown>>
type MemberOf<V> = V extends unknown ? keyof V : never // of any form of a union

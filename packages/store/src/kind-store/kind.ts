import type { Entity, ViewOf } from '@overlay/model'
import type { Context, EntityServiceService, Methods, Perspective, Selection } from '@overlay/rpc'
import sql, { type Sql } from 'sql-template-tag'
import type { ChangeLog } from '../change-log/change-log.js'
import type { Moment } from '../change-log/deleted-entities.js'
import type { Db } from '../postgres/database.js'
import { tableOf } from './row.js'
import type { Names, Seams } from './seams.js'

/** Answers `select` of a kind: the rows of each link, by the name of the link. */
export type Selects = Readonly<
  Record<string, (id: string, perspective: Perspective | undefined, context: Context) => Promise<Selection>>
>

/** The operations that a kind may answer itself. */
export type KindOperations = Pick<
  Methods<EntityServiceService>,
  'list' | 'get' | 'create' | 'update' | 'delete'
>

/** What a kind does besides its seams. */
export interface KindBehaviour {
  /** Links whose rows only the running service knows. */
  readonly selects?: Selects
  /** Operations in place of the uniform ones, which they may call. */
  readonly operations?: (uniform: KindOperations) => Partial<KindOperations>
  /** Which of the table's rows followers load under this kind's name; absent: all. */
  readonly followedRows?: Sql
}

/** A kind that this service owns: its definition and all of its behaviour. */
export interface Kind extends KindBehaviour {
  readonly entity: Entity
  readonly seams: Seams<Entity>
}

/** Joins the definition of a kind with its behaviour. */
export function kind<
  E extends Entity,
  Joined extends object = object,
  V extends ViewOf<E> = ViewOf<E>,
  M extends string = never,
>(entity: E, seams: Seams<E, Joined, V, M> = {}, behaviour: KindBehaviour = {}): Kind {
  if (entity.shows.always && !seams.view) throw new Error(`${entity.kind}: no view for what it shows`)
  return { ...behaviour, entity, seams: seams as unknown as Seams<Entity> }
}

/** The kinds of one service, on its own schema. */
export interface Store {
  readonly changeLog: ChangeLog
  readonly kinds: readonly Kind[]
  readonly kindOf: (name: string) => Kind
  readonly owns: (name: string) => boolean
  /** Now, for look-ups of references. Concurrent calls share it. */
  readonly takeMoment: () => Promise<Moment>
  /** Of all kinds: asks the owners of those that are not owned here. */
  readonly names: Names
}

export async function namesIn(
  db: Db,
  entity: Entity,
  ids: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  if (ids.length === 0) return new Map()
  const name = 'name' in entity.fields ? sql`name` : sql`id`
  const { rows } = await db.query<{ id: string; name: string }>(
    sql`select id, ${name} as name from ${tableOf(entity)} where id = any(${ids})`,
  )
  return new Map(rows.map((row) => [row.id, row.name]))
}

/** A member that all messages of this type have. */
export function required<T>(value: T | undefined): T {
  if (value === undefined) throw new Error('a required member of the message is missing')
  return value
}

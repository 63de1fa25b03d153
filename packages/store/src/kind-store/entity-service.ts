import type { Entity, ViewOf } from '@overlay/model'
import { coalesced } from '@overlay/process/async'
import type { EntityServiceService, Methods } from '@overlay/rpc'
import type { ChangeLog } from '../change-log/change-log.js'
import { momentOf } from '../change-log/deleted-entities.js'
import type { Db } from '../postgres/database.js'
import { type Kind, type KindOperations, namesIn, type Selects, type Store } from './kind.js'
import { reads } from './reads.js'
import type { Names } from './seams.js'
import { encodeViews } from './views.js'
import { writes } from './writes.js'

/** Members that a service adds to an entity of another one. */
export type ForeignView<E extends Entity> = Partial<ViewOf<E>>
export type ForeignViews<E extends Entity> = readonly (ForeignView<E> | undefined)[]

/** What a service knows of kinds that another service owns. */
export interface ForeignKind {
  readonly view?: (db: Db, ids: readonly string[]) => Promise<readonly (object | undefined)[]>
  readonly selects?: Selects
}

export interface EntityServiceOptions {
  readonly changeLog: ChangeLog
  readonly kinds: readonly Kind[]
  /** Names of entities of other services. */
  readonly names: Names
  /** By kind. */
  readonly foreign?: Readonly<Record<string, ForeignKind>>
  /** Further numbers for `count`, beside the rows of the kinds. */
  readonly counts?: Readonly<Record<string, (db: Db) => Promise<number>>>
}

/** The operations of a service's kinds: a kind's own where it has them, the uniform ones otherwise. */
export function entityService({
  changeLog,
  kinds,
  names,
  foreign = {},
  counts = {},
}: EntityServiceOptions): Methods<EntityServiceService> {
  const { db } = changeLog
  const byName = new Map(kinds.map((one) => [one.entity.kind, one]))
  const store: Store = {
    changeLog,
    kinds,
    kindOf(name) {
      const kind = byName.get(name)
      if (!kind) throw new Error(`kind '${name}' is not owned here`)
      return kind
    },
    owns: (name) => byName.has(name),
    takeMoment: coalesced(() => momentOf(db)),
    names: async (name, ids, context) => {
      const own = byName.get(name)
      return own ? namesIn(db, own.entity, ids) : names(name, ids, context)
    },
  }
  const uniform = { ...reads(store), ...writes(store) }
  const operations = new Map<string, KindOperations>(
    kinds.map(({ entity, operations }) => [entity.kind, { ...uniform, ...operations?.(uniform) }]),
  )
  const of = (kind = ''): KindOperations => operations.get(kind) ?? uniform

  return {
    ...uniform,

    list: (request, context) => of(request.kind).list(request, context),
    get: (request, context) => of(request.ref?.kind).get(request, context),
    create: (request, context) => of(request.kind).create(request, context),
    update: (request, context) => of(request.ref?.kind).update(request, context),
    delete: (request, context) => of(request.kind).delete(request, context),

    async select(request, context) {
      const { from, link, perspective } = request
      const select = from && foreign[from.kind]?.selects?.[link]
      return select ? select(from.id, perspective, context) : uniform.select(request, context)
    },

    async view(request, context) {
      const view = foreign[request.kind]?.view
      return view ? encodeViews(await view(db, request.ids)) : uniform.view(request, context)
    },

    async count(request, context) {
      const { rows } = await uniform.count(request, context)
      const numbers = Object.entries(counts).map(async ([name, count]) => [name, await count(db)] as const)
      return { rows: { ...rows, ...Object.fromEntries(await Promise.all(numbers)) } }
    },
  }
}

import type { Entity, Field, RowOf } from '@overlay/model'
import type { Context } from '@overlay/rpc'
import sql, { empty, type Sql } from 'sql-template-tag'
import {
  type IdsByKind,
  idsByKind,
  lockEntities,
  type Moment,
  ReferencesReloaded,
} from '../change-log/deleted-entities.js'
import { LOOK_UP_TRIES } from '../limits.js'
import type { Tx } from '../postgres/database.js'
import type { Store } from './kind.js'
import { type AnyRow, columnsOf, membersIn, rowOf, tableOf } from './row.js'
import type { LockedReferences } from './seams.js'

/** What a write refers to. Entities of other services have been looked up at their owners. */
export interface References {
  readonly own: IdsByKind
  readonly foreign: IdsByKind
  /** Before the look-up. */
  readonly moment: Moment | undefined
  /** Those of other services that exist. */
  readonly existing: IdsByKind
}

/** What to do with rows that others have locked. */
export type WhenLocked = 'wait' | 'skip locked'

export const lockSql = (whenLocked: WhenLocked): Sql => (whenLocked === 'wait' ? empty : sql`skip locked`)

/** Runs a write with references: looks them up, again when their schema was reloaded meanwhile. */
export async function withReferences<T>(
  store: Store,
  members: Members,
  context: Context,
  write: (references: References) => Promise<T>,
): Promise<T> {
  for (let left = LOOK_UP_TRIES - 1; ; left--) {
    const references = await lookUp(store, members, context)
    try {
      return await write(references)
    } catch (err) {
      if (!(err instanceof ReferencesReloaded) || left === 0) throw err
    }
  }
}

/** Looks up entities of other services at their owners, before a transaction takes a connection. */
async function lookUp(
  { takeMoment, owns, names }: Store,
  members: Members,
  context: Context,
): Promise<References> {
  const references = referencesIn(members)
  const own = idsByKind(references.filter(({ kind }) => owns(kind)))
  const foreign = idsByKind(references.filter(({ kind }) => !owns(kind)))
  const moment = foreign.size > 0 ? await takeMoment() : undefined
  const lookUps = [...foreign].map(async ([kind, ids]) => {
    const found = await names(kind, [...ids], context)
    return [kind, new Set(found.keys())] as const
  })
  return { own, foreign, moment, existing: new Map(await Promise.all(lookUps)) }
}

/**
 * Locks the references of writes in their transaction. To be called before any other row is locked.
 *
 * All transactions lock in this order, to avoid deadlocks:
 * 1. a consumer: its row of `followed`;
 * 2. entities of other schemas: writers share a lock, consumers take it exclusively (deleted-entities.ts);
 * 3. rows of this schema to which the written rows refer, by kind and id, for key share;
 * 4. the rows that are written or deleted, by id;
 * 5. rows that refer to one that is deleted, by kind and id, for update;
 * 6. the row of `stream`, in `appendChanges`.
 * Only later kinds refer to a kind, in this order: config types, configs, services and posture checks, policies, configs
 * of single identities.
 */
export async function lockReferences(
  tx: Tx,
  { kindOf, owns }: Store,
  writes: readonly References[],
  whenLocked: WhenLocked,
) {
  const moments = new Set(writes.flatMap(({ moment }) => moment ?? []))
  const deleted = await lockEntities(tx, union(writes.map(({ foreign }) => foreign)), [...moments])
  const rows = new Map<string, AnyRow>()

  async function read(ids: IdsByKind, lock: Sql): Promise<void> {
    for (const kind of [...ids.keys()].sort()) {
      const { entity } = kindOf(kind)
      const { rows: stored } = await tx.query(sql`
        select ${columnsOf(entity)} from ${tableOf(entity)} where id = any(${[...(ids.get(kind) ?? [])]})
         order by id ${lock}`)
      for (const one of stored) rows.set(keyOf(kind, one.id), rowOf(entity, one))
    }
  }
  await read(union(writes.map(({ own }) => own)), sql`for key share ${lockSql(whenLocked)}`)

  return {
    /** Reads what these rows refer to by members that never change. */
    async addFixed({ fields }: Entity, before: Iterable<AnyRow>): Promise<void> {
      const fixed = Object.entries(fields).filter(
        ([, field]) => isFixed(field) && field.ref && owns(field.ref),
      )
      if (fixed.length === 0) return
      const members = [...before].flatMap((row) =>
        fixed.map(([name, field]) => [field, membersIn(row)[name]] as const),
      )
      await read(idsByKind(referencesIn(members)), empty)
    },

    of: ({ own, existing }: References): LockedReferences => ({
      exists: (kind, id) =>
        owns(kind)
          ? own.get(kind)?.has(id) === true && rows.has(keyOf(kind, id))
          : existing.get(kind)?.has(id) === true && deleted.get(kind)?.has(id) !== true,
      named: <E extends Entity>({ kind }: E, id: string) => rows.get(keyOf(kind, id)) as RowOf<E> | undefined,
    }),
  }
}

const isFixed = ({ fixed, write }: Field): boolean => fixed === true || write[1] === '-'

const keyOf = (kind: string, id: string): string => `${kind} ${id}`

function union(all: readonly IdsByKind[]): IdsByKind {
  return idsByKind(
    all.flatMap((ids) => [...ids].flatMap(([kind, some]) => [...some].map((id) => ({ kind, id })))),
  )
}

type Members = readonly (readonly [Field, unknown])[]

/** The written fields, with their values. */
export const membersOf = (
  { fields }: Entity,
  values: object,
  written: ReadonlySet<string>,
): (readonly [Field, unknown])[] =>
  Object.entries(fields)
    .filter(([name]) => written.has(name))
    .map(([name, field]) => [field, membersIn(values)[name]])

/** The ids that roles name. */
export const idsIn = (roles: readonly string[]): string[] =>
  roles.filter((role) => role.startsWith('@')).map((role) => role.slice(1))

/** An entity, of this schema or another one. */
export interface Reference {
  readonly kind: string
  readonly id: string
}

/** The entities to which these members refer. */
export const referencesIn = (members: Members): Reference[] =>
  members.flatMap(([field, value]) => referencesOf(field, value))

function referencesOf({ ref, refs, rolesOf }: Field, value: unknown): Reference[] {
  if (refs) return idsOfValue(value).map((id) => ({ kind: refs, id }))
  const list = (value ?? []) as readonly string[]
  if (rolesOf) return idsIn(list).map((id) => ({ kind: rolesOf, id }))
  return ref && value ? [{ kind: ref, id: value as string }] : []
}

/** The ids of a list, or of a map by ids. */
const idsOfValue = (value: unknown): readonly string[] =>
  Array.isArray(value) ? (value as readonly string[]) : Object.keys(value ?? {})

import type { Entity, Field } from '@overlay/model'
import type { Context } from '@overlay/rpc'
import sql from 'sql-template-tag'
import {
  type IdsByKind,
  idsByKind,
  lockEntities,
  momentOf,
  ReferencesReloaded,
} from '../change-log/deleted-entities.js'
import type { Tx } from '../postgres/database.js'
import type { Store } from './kind.js'
import { tableOf } from './row.js'

/** Whether an entity exists to which the write refers. It is locked until the commit. */
export type Exists = (kind: string, id: string) => boolean

const TRIES = 3

/** Runs a write with references: looks them up and locks them, again when their schema was reloaded meanwhile. */
export async function withReferences<T>(
  store: Store,
  members: readonly (readonly [Field, unknown])[],
  context: Context,
  write: (lock: Lock) => Promise<T>,
): Promise<T> {
  for (let left = TRIES - 1; ; left--) {
    const lock = await prepareReferences(store, members, context)
    try {
      return await write(lock)
    } catch (err) {
      if (!(err instanceof ReferencesReloaded) || left === 0) throw err
    }
  }
}

/** Locks the references. To be called before any other row is locked. */
type Lock = (tx: Tx) => Promise<Exists>

/**
 * Prepares the references of a write: looks up entities of other services at their owners, before the transaction takes
 * a connection. The returned function locks all of them in the transaction, before its own row.
 *
 * All transactions lock in this order, to avoid deadlocks:
 * 1. a consumer: its row of `followed`;
 * 2. entities of other schemas: writers share a lock, consumers take it exclusively (deleted-entities.ts);
 * 3. rows of this schema to which the written row refers, by kind and id, for key share;
 * 4. the row that is written or deleted;
 * 5. rows that refer to it, by kind and id, for update;
 * 6. the row of `stream`, in `appendChanges`.
 * Only later kinds refer to a kind, in this order: config types, configs, services and posture checks, policies, configs
 * of single identities.
 */
async function prepareReferences(
  { changeLog, kindOf, owns, names }: Store,
  members: readonly (readonly [Field, unknown])[],
  context: Context,
): Promise<Lock> {
  const references = referencesIn(members)
  const own = idsByKind(references.filter(({ kind }) => owns(kind)))
  const foreign = idsByKind(references.filter(({ kind }) => !owns(kind)))

  const moment = foreign.size > 0 ? await momentOf(changeLog.db) : undefined
  const lookUps = [...foreign].map(
    async ([kind, ids]) => [kind, await names(kind, [...ids], context)] as const,
  )
  const existing = new Map(await Promise.all(lookUps))

  return async (tx) => {
    const deleted = await lockEntities(tx, foreign, moment)
    const locked = await lockRows(tx, kindOf, own)
    return (kind, id) =>
      owns(kind)
        ? locked.get(kind)?.has(id) === true
        : existing.get(kind)?.has(id) === true && deleted.get(kind)?.has(id) !== true
  }
}

/** The written fields, with their values. */
export const membersOf = (
  { fields }: Entity,
  values: object,
  written: ReadonlySet<string>,
): (readonly [Field, unknown])[] =>
  Object.entries(fields)
    .filter(([name]) => written.has(name))
    .map(([name, field]) => [field, (values as Readonly<Record<string, unknown>>)[name]])

/** The ids that roles name. */
export const idsIn = (roles: readonly string[]): string[] =>
  roles.filter((role) => role.startsWith('@')).map((role) => role.slice(1))

/** An entity, of this schema or another one. */
export interface Reference {
  readonly kind: string
  readonly id: string
}

/** The entities to which these members refer. */
export const referencesIn = (members: readonly (readonly [Field, unknown])[]): Reference[] =>
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

/** Returns the rows that exist. */
async function lockRows(tx: Tx, kindOf: Store['kindOf'], ids: IdsByKind): Promise<IdsByKind> {
  const locked = new Map<string, Set<string>>()
  for (const kind of [...ids.keys()].sort()) {
    const { rows } = await tx.query<{ id: string }>(sql`
      select id from ${tableOf(kindOf(kind).entity)} where id = any(${[...(ids.get(kind) ?? [])]})
       order by id for key share`)
    locked.set(kind, new Set(rows.map(({ id }) => id)))
  }
  return locked
}

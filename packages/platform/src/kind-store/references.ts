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

/** Whether an entity that the write names exists, and will until the commit. */
export type Exists = (kind: string, id: string) => boolean

const TRIES = 3

/** A write with references: they are looked up and held, again when a follower has loaded their schema meanwhile. */
export async function withReferences<T>(
  store: Store,
  members: readonly (readonly [Field, unknown])[],
  context: Context,
  write: (hold: Hold) => Promise<T>,
): Promise<T> {
  for (let left = TRIES - 1; ; left--) {
    const hold = await prepareReferences(store, members, context)
    try {
      return await write(hold)
    } catch (err) {
      if (!(err instanceof ReferencesReloaded) || left === 0) throw err
    }
  }
}

/** Locks the references, before any other row. */
type Hold = (tx: Tx) => Promise<Exists>

/**
 * Prepares the references of a write: entities of other services are looked up at their owners, before the transaction
 * takes a connection. What this answers locks all of them in the transaction, before its own row.
 *
 * Every transaction locks in one order, so that none waits for another in a circle:
 * 1. a follower: its row of `followed`;
 * 2. entities of other schemas: writers share a lock, followers take it alone (deleted-entities.ts);
 * 3. rows of this schema that the written row names, by kind and id, for key share;
 * 4. the row that is written or deleted;
 * 5. rows that name it, by kind and id, for update;
 * 6. the row of `stream`, in `append`.
 * A kind is named only by kinds that come later: config types, configs, services and posture checks, policies, configs
 * of single identities.
 */
async function prepareReferences(
  { changeLog, kindOf, owns, names }: Store,
  members: readonly (readonly [Field, unknown])[],
  context: Context,
): Promise<Hold> {
  const named = members.flatMap(([field, value]) => referencesOf(field, value))
  const own = idsByKind(named.filter(({ kind }) => owns(kind)))
  const foreign = idsByKind(named.filter(({ kind }) => !owns(kind)))

  const moment = foreign.size > 0 ? await momentOf(changeLog.db) : undefined
  const looked = [...foreign].map(
    async ([kind, ids]) => [kind, await names(kind, [...ids], context)] as const,
  )
  const known = new Map(await Promise.all(looked))

  return async (tx) => {
    const deleted = await lockEntities(tx, foreign, moment)
    const held = await lockRows(tx, kindOf, own)
    return (kind, id) =>
      owns(kind)
        ? held.get(kind)?.has(id) === true
        : known.get(kind)?.has(id) === true && deleted.get(kind)?.has(id) !== true
  }
}

/** The fields among these names, with their values. */
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

function referencesOf({ ref, refs, rolesOf }: Field, value: unknown): { kind: string; id: string }[] {
  if (refs) return idsOfValue(value).map((id) => ({ kind: refs, id }))
  const list = (value ?? []) as readonly string[]
  if (rolesOf) return idsIn(list).map((id) => ({ kind: rolesOf, id }))
  return ref && value ? [{ kind: ref, id: value as string }] : []
}

/** The ids of a list, or of a map by ids. */
const idsOfValue = (value: unknown): readonly string[] =>
  Array.isArray(value) ? (value as readonly string[]) : Object.keys(value ?? {})

/** Those that exist. */
async function lockRows(tx: Tx, kindOf: Store['kindOf'], ids: IdsByKind): Promise<IdsByKind> {
  const held = new Map<string, Set<string>>()
  for (const kind of [...ids.keys()].sort()) {
    const { rows } = await tx.query<{ id: string }>(sql`
      select id from ${tableOf(kindOf(kind).entity)} where id = any(${[...(ids.get(kind) ?? [])]})
       order by id for key share`)
    held.set(kind, new Set(rows.map(({ id }) => id)))
  }
  return held
}

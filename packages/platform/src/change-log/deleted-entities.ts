import { kinds } from '@overlay/model'
import { type Change, Fault } from '@overlay/rpc'
import sql, { type Sql } from 'sql-template-tag'
import { type Db, onlyRow, type Tx } from '../postgres/database.js'
import type { Effects } from './consumer.js'

/** Ids by kind. */
export type IdsByKind = ReadonlyMap<string, ReadonlySet<string>>

/** The moment before references were looked up at their owners, as the database counts transactions. */
export type Moment = string

export async function momentOf(db: Db): Promise<Moment> {
  const { rows } = await db.query<{ moment: string }>(
    sql`select pg_current_snapshot()::text as moment`,
    'moment',
  )
  return onlyRow(rows).moment
}

/** The schema of the entities was reloaded after they were looked up, so any of them may be deleted. */
export class ReferencesReloaded extends Fault {
  constructor() {
    super('UNAVAILABLE')
  }
}

/** Locks shared by writers and taken alone by followers. Few, because a follower may need all of them. */
const SLOTS = 64

/**
 * Takes the locks of these entities in ascending order. A queue of the server: a follower that waits is not overtaken
 * by later writers.
 */
async function lockSlots(tx: Tx, ids: IdsByKind, way: 'shared' | 'alone'): Promise<void> {
  const keys = [...ids].flatMap(([kind, some]) => [...some].map((id) => `${kind} ${id}`))
  const which = sql`
    select distinct abs(hashtext(key) % ${SLOTS}) as slot from unnest(${keys}::text[]) as key order by 1`
  await tx.query(slots(which, way))
}

const slots = (which: Sql, way: 'shared' | 'alone'): Sql => {
  const key = sql`hashtext(current_schema() || ' references'), slot`
  return way === 'shared'
    ? sql`select pg_advisory_xact_lock_shared(${key}) from (${which}) as wanted`
    : sql`select pg_advisory_xact_lock(${key}) from (${which}) as wanted`
}

/**
 * Holds entities of other schemas that a transaction is about to name: until its commit no deletion of them is followed
 * here, and a deletion that is followed later finds what was written. Answers those whose deletion has been followed
 * since `moment`, or at any time.
 */
export async function lockEntities(tx: Tx, ids: IdsByKind, moment?: Moment): Promise<IdsByKind> {
  if (ids.size === 0) return new Map()
  await lockSlots(tx, ids, 'shared')
  const named = [...ids].flatMap(([kind, some]) => [...some].map((id) => ({ kind, id })))
  const schemas = [...ids.keys()].map((kind) => kinds.get(kind)?.owner ?? kind)
  const since =
    moment === undefined ? sql`true` : sql`not pg_visible_in_snapshot(deleted_by, ${moment}::pg_snapshot)`
  const { rows } = await tx.query<{ kind: string; id: string }>(
    sql`
    select kind, id from deleted_entity
     where ${since}
       and ((kind, id) in (select * from unnest(${named.map(({ kind }) => kind)}::text[],
                                                ${named.map(({ id }) => id)}::text[]))
            or ${moment !== undefined} and kind = '' and id = any(${schemas}))`,
  )
  if (rows.some(({ kind }) => kind === '')) throw new ReferencesReloaded()
  return idsByKind(rows)
}

/** The effects of a follower, which also notes the deletions of these kinds for the writers that name them. */
export const recordingDeletions = (schema: string, noted: readonly string[], effects: Effects): Effects => {
  const isNoted = ({ kind, json }: Change): boolean => json.length === 0 && noted.includes(kind)
  return {
    ...effects,
    kinds: [...new Set([...effects.kinds, ...noted])],
    concerns: (change) => isNoted(change) || (effects.concerns?.(change) ?? true),
    async apply(tx, changes, upto) {
      const deleted = changes.filter(isNoted)
      if (deleted.length > 0) {
        await lockSlots(tx, idsByKind(deleted), 'alone')
        await note(tx, deleted)
      }
      return effects.apply(tx, changes, upto)
    },
    async reload(tx, rows, upto) {
      await tx.query(slots(sql`select generate_series(0, ${SLOTS} - 1) as slot`, 'alone'))
      await note(tx, [{ kind: '', id: schema }])
      // a restored backup brings deleted entities back
      for (const kind of noted)
        await tx.query(sql`delete from deleted_entity where kind = ${kind} and id in (${rows.ids(kind)})`)
      return effects.reload(tx, rows, upto)
    },
  }
}

/** How long a write may take, with a large margin. */
const KEPT = '1 hour'

async function note(tx: Tx, deleted: readonly Pick<Change, 'kind' | 'id'>[]): Promise<void> {
  await tx.query(sql`delete from deleted_entity where kind <> '' and at < now() - ${KEPT}::interval`)
  await tx.query(sql`
    insert into deleted_entity (kind, id)
    select distinct * from unnest(${deleted.map(({ kind }) => kind)}::text[], ${deleted.map(({ id }) => id)}::text[])
        on conflict (kind, id) do update set deleted_by = excluded.deleted_by, at = excluded.at`)
}

export function idsByKind(rows: readonly Pick<Change, 'kind' | 'id'>[]): Map<string, Set<string>> {
  const ids = new Map<string, Set<string>>()
  for (const { kind, id } of rows) {
    const known = ids.get(kind)
    if (known) known.add(id)
    else ids.set(kind, new Set([id]))
  }
  return ids
}

import { kinds } from '@overlay/model'
import { type Change, Fault } from '@overlay/rpc'
import sql, { type Sql } from 'sql-template-tag'
import { KEEP_DELETED_MS, REFERENCE_LOCKS } from '../limits.js'
import { type Db, onlyRow, type Tx } from '../postgres/database.js'
import type { Effects } from './effects.js'
import { isDeleted } from './source.js'

/** Ids by kind. */
export type IdsByKind = ReadonlyMap<string, ReadonlySet<string>>

/** A snapshot of transactions, taken before references are looked up at their owners. */
export type Moment = string

export async function momentOf(db: Db): Promise<Moment> {
  const { rows } = await db.query<{ moment: string }>(
    sql`select pg_current_snapshot()::text as moment`,
    'moment',
  )
  return onlyRow(rows).moment
}

/** The schema of the entities was reloaded after the look-up, so any of them may be deleted. */
export class ReferencesReloaded extends Fault {
  constructor() {
    super('UNAVAILABLE')
  }
}

/** The schema of a kind. */
export const ownerOf = (kind: string): string => kinds.get(kind)?.owner ?? kind

/** Takes the locks of these entities in ascending order. The server queues: later writers do not overtake a consumer. */
async function lockSlots(tx: Tx, ids: IdsByKind, mode: 'shared' | 'exclusive'): Promise<void> {
  const keys = [...ids].flatMap(([kind, some]) => [...some].map((id) => `${kind} ${id}`))
  const which = sql`
    select distinct abs(hashtext(key) % ${REFERENCE_LOCKS}) as slot from unnest(${keys}::text[]) as key order by 1`
  await tx.query(slots(which, mode))
}

const slots = (which: Sql, mode: 'shared' | 'exclusive'): Sql => {
  const key = sql`hashtext(current_schema() || ' references'), slot`
  return mode === 'shared'
    ? sql`select pg_advisory_xact_lock_shared(${key}) from (${which}) as slots`
    : sql`select pg_advisory_xact_lock(${key}) from (${which}) as slots`
}

/**
 * Locks entities of other schemas that a transaction refers to: until its commit no consumer applies their deletion, and
 * one that applies it later finds the rows. Returns the entities whose deletion was applied since one of these moments,
 * or ever.
 */
export async function lockEntities(
  tx: Tx,
  ids: IdsByKind,
  moment?: Moment | readonly Moment[],
): Promise<IdsByKind> {
  if (ids.size === 0) return new Map()
  await lockSlots(tx, ids, 'shared')
  const named = [...ids].flatMap(([kind, some]) => [...some].map((id) => ({ kind, id })))
  const schemas = [...ids.keys()].map(ownerOf)
  const since =
    moment === undefined
      ? sql`true`
      : sql`exists (select from unnest(${[moment].flat()}::pg_snapshot[]) as moment
                     where not pg_visible_in_snapshot(deleted_by, moment))`
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

/** The effects of a consumer that also records deletions of these kinds, for the writers that refer to them. */
export const recordingDeletions = (schema: string, kinds: readonly string[], effects: Effects): Effects => {
  const isRecorded = (change: Change): boolean => isDeleted(change) && kinds.includes(change.kind)
  return {
    ...effects,
    kinds: [...new Set([...effects.kinds, ...kinds])],
    concerns: (change) => isRecorded(change) || (effects.concerns?.(change) ?? true),
    async apply(tx, changes, upto) {
      const deleted = changes.filter(isRecorded)
      if (deleted.length > 0) {
        await lockSlots(tx, idsByKind(deleted), 'exclusive')
        await record(tx, deleted)
      }
      return effects.apply(tx, changes, upto)
    },
    async reload(tx, rows, upto) {
      await tx.query(slots(sql`select generate_series(0, ${REFERENCE_LOCKS} - 1) as slot`, 'exclusive'))
      await record(tx, [{ kind: '', id: schema }])
      // a restored backup brings deleted entities back
      for (const kind of kinds)
        await tx.query(sql`delete from deleted_entity where kind = ${kind} and id in (${rows.ids(kind)})`)
      return effects.reload(tx, rows, upto)
    },
  }
}

async function record(tx: Tx, deleted: readonly Pick<Change, 'kind' | 'id'>[]): Promise<void> {
  await tx.query(
    sql`delete from deleted_entity where kind <> '' and at < now() - make_interval(secs => ${KEEP_DELETED_MS / 1000})`,
  )
  await tx.query(sql`
    insert into deleted_entity (kind, id)
    select distinct * from unnest(${deleted.map(({ kind }) => kind)}::text[], ${deleted.map(({ id }) => id)}::text[])
        on conflict (kind, id) do update set deleted_by = excluded.deleted_by, at = excluded.at`)
}

export function idsByKind(rows: readonly Pick<Change, 'kind' | 'id'>[]): Map<string, Set<string>> {
  const ids = new Map<string, Set<string>>()
  for (const { kind, id } of rows) {
    const ofKind = ids.get(kind)
    if (ofKind) ofKind.add(id)
    else ids.set(kind, new Set([id]))
  }
  return ids
}

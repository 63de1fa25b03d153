import { pagesOf } from '@overlay/process/async'
import type { RowChange } from '@overlay/store/change-log'
import { type Db, onlyRow, type Tx } from '@overlay/store/postgres'
import sql from 'sql-template-tag'
import type { StoredTimes } from '../domain/update-times.js'
import type { ExclusiveLock } from './exclusive-lock.js'

interface Row {
  readonly batch: number
  readonly everybody: Date | null
  readonly policy_timeline: string | null
  readonly policy_number: number
  readonly identity_timeline: string | null
  readonly identity_number: number
  readonly id: string | null
  readonly at: Date
}

/** The rows of later batches than this one; after 0: all. */
export async function readUpdates(db: Db, batch: number): Promise<StoredTimes> {
  const { rows } = await db.query<Row & Record<string, unknown>>(
    sql`
    select head.batch, everybody_at as everybody,
           policy_timeline, policy_number, identity_timeline, identity_number,
           identity_id as id, changed_at as at
      from service_update_head as head left join service_update as row on row.batch > ${batch}`,
    'read-service-updates',
  )
  const [head] = rows
  if (!head) throw new Error('service_update_head has no row')
  if (head.batch < batch) return readUpdates(db, 0) // another database: a restored one
  return {
    batch: head.batch,
    everybodyAtMs: head.everybody?.getTime() ?? 0,
    covered: {
      ...(head.policy_timeline && {
        policy: { timeline: head.policy_timeline, number: head.policy_number },
      }),
      ...(head.identity_timeline && {
        identity: { timeline: head.identity_timeline, number: head.identity_number },
      }),
    },
    rows: rows.flatMap(({ id, at }) => (id === null ? [] : [{ id, atMs: at.getTime() }])),
  }
}

const CHUNK = 5000

/** Writes the rows first, then that they contain everything up to `covered`. Returns the batch. */
export async function writeUpdates(
  lock: ExclusiveLock,
  { everybodyAtMs, covered, rows }: Omit<StoredTimes, 'batch'>,
  deletedIds: readonly string[],
): Promise<number> {
  for (const chunk of pagesOf(rows, CHUNK)) {
    await lock.query(sql`
      with head as (update service_update_head set batch = batch + 1 returning batch)
      insert into service_update (identity_id, changed_at, batch)
      select id, to_timestamp(ms / 1000.0), batch
        from head, unnest(${chunk.map(({ id }) => id)}::text[], ${chunk.map(({ atMs }) => atMs)}::float8[])
             as list (id, ms)
          on conflict (identity_id) do update set changed_at = excluded.changed_at, batch = excluded.batch`)
  }
  if (deletedIds.length > 0)
    await lock.query(sql`delete from service_update where identity_id = any(${deletedIds}::text[])`)
  const { policy, identity } = covered
  const heads = await lock.query<{ batch: number }>(sql`
    update service_update_head
       set batch = batch + 1,
           everybody_at = to_timestamp(nullif(${everybodyAtMs}::float8, 0) / 1000.0),
           policy_timeline = ${policy?.timeline}, policy_number = ${policy?.number},
           identity_timeline = ${identity?.timeline}, identity_number = ${identity?.number}
 returning batch::float8 as batch`)
  return onlyRow(heads).batch
}

/** Times are neither in the change log nor in the audit. */
export async function deleteUpdates(tx: Tx, identityIds: readonly string[]): Promise<RowChange[]> {
  await tx.query(sql`delete from service_update where identity_id = any(${identityIds}::text[])`)
  return []
}

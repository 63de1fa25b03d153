import type { Db, Tx } from '@overlay/store/postgres'
import sql from 'sql-template-tag'
import { ENDED_TERMINATORS_KEPT_MINUTES } from '../domain/limits.js'

/** Remembers deleted terminators whose circuits must end. */
export async function rememberEnded(tx: Tx, ids: readonly string[]): Promise<void> {
  if (ids.length === 0) return
  await tx.query(
    sql`
    insert into ended_terminator (id, ended_at)
    select id, clock_timestamp() from unnest(${ids}::text[]) as id order by id
        on conflict (id) do update set ended_at = excluded.ended_at`,
    'remember-ended-terminators',
  )
}

/** To be called after their circuits have ended. */
export async function forgetEnded(db: Db): Promise<void> {
  await db.query(
    sql`
    delete from ended_terminator where id in (
           select id from ended_terminator where ended_at < now() - make_interval(mins => ${ENDED_TERMINATORS_KEPT_MINUTES})
              for update skip locked)`,
    'forget-ended-terminators',
  )
}

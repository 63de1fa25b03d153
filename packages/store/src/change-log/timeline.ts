import sql from 'sql-template-tag'
import type { Db } from '../postgres/database.js'

/**
 * Begins a new timeline if the database is not the one that the numbers belong to: a restored backup, a copy, or the
 * server that took over after a failover. There the same number may stand for another change.
 */
export async function ensureTimeline(db: Db): Promise<void> {
  await db.query(sql`
    update stream set timeline = gen_random_uuid(), origin = here.origin, wal = here.wal
      from current_origin() as here
     where (stream.origin, stream.wal) is distinct from (here.origin, here.wal)`)
}

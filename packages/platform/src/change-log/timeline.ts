import sql from 'sql-template-tag'
import type { Db } from '../postgres/database.js'

/**
 * Begins a new timeline when this is not the database that the numbers were counted in: a restored backup, a copy, the
 * server that took over after a failover. The same number may stand for another change there.
 */
export async function settleTimeline(db: Db): Promise<void> {
  await db.query(sql`
    update stream set timeline = gen_random_uuid(), origin = here.origin, wal = here.wal
      from current_origin() as here
     where (stream.origin, stream.wal) is distinct from (here.origin, here.wal)`)
}

import type { Db } from '@overlay/store/postgres'
import sql from 'sql-template-tag'
import { ENDED_SESSIONS_KEPT_MINUTES } from '../limits.js'

/** A session that has ended. Routers know it by its token. */
export interface EndedSession {
  readonly id: string
  readonly token: string
}

export async function endedSessions(db: Db, ids: readonly string[]): Promise<readonly EndedSession[]> {
  const { rows } = await db.query<EndedSession>(
    sql`select id, token from ended_session where id = any(${ids})`,
    'ended-sessions',
  )
  return rows
}

/** The ids of all that are still remembered. */
export async function recentlyEnded(db: Db): Promise<readonly string[]> {
  const { rows } = await db.query<{ id: string }>(sql`select id from ended_session order by ended_at, id`)
  return rows.map(({ id }) => id)
}

export async function pruneEnded(db: Db, limit = 20_000): Promise<void> {
  await db.query(sql`
    delete from ended_session where id in (
           select id from ended_session where ended_at < now() - make_interval(mins => ${ENDED_SESSIONS_KEPT_MINUTES})
            order by ended_at limit ${limit} for update skip locked)`)
}

/** The keys among these that are neither the id nor the token of a session. */
export async function unknownSessions(db: Db, keys: readonly string[]): Promise<ReadonlySet<string>> {
  const { rows } = await db.query<{ key: string }>(
    sql`
    select key from unnest(${keys}::text[]) as given (key)
     where not exists (select from session where session.token = given.key)
       and not exists (select from session where session.id = given.key)`,
    'unknown-sessions',
  )
  return new Set(rows.map(({ key }) => key))
}

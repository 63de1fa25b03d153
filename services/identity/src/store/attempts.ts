import type { Db } from '@overlay/platform'
import sql from 'sql-template-tag'

/** Wrong passwords since the last right one, this one included; the same number for all replicas. */
export async function countFailure(db: Db, authenticatorId: string): Promise<number> {
  const { rows } = await db.query<{ failures: number }>(sql`
    insert into login_attempt (authenticator_id, failures)
    select id, 1 from authenticator where id = ${authenticatorId}
        on conflict (authenticator_id) do update set failures = login_attempt.failures + 1, last_at = now()
 returning failures`)
  return rows[0]?.failures ?? 0 // the authenticator has just been deleted
}

export async function forgetFailures(db: Db, authenticatorId: string): Promise<void> {
  await db.query(sql`delete from login_attempt where authenticator_id = ${authenticatorId}`)
}

export async function forgetFailuresOf(db: Db, identityId: string): Promise<void> {
  await db.query(sql`
    delete from login_attempt
     where authenticator_id in (select id from authenticator where identity_id = ${identityId})`)
}

import { createHash } from 'node:crypto'
import type { Db } from '@overlay/platform/postgres'
import sql from 'sql-template-tag'
import { type AttemptHistory, type Failures, forgottenAfterSeconds } from '../domain/login-pause.js'

/** A user name that may not exist, and the network from which it is tried. */
export interface Attempt {
  readonly username: string
  readonly source: string
}

const everywhere = '*'
const familiarDays = 7
const none: Failures = { failures: 0, secondsAgo: Number.POSITIVE_INFINITY }

const digestOf = ({ username }: Attempt): Buffer => createHash('sha256').update(username).digest()

export async function attemptsOf(db: Db, attempt: Attempt): Promise<AttemptHistory> {
  const { rows } = await db.query<
    Failures & Pick<AttemptHistory, 'isFamiliar' | 'isStale'> & { source: string }
  >(
    sql`
    select source, failures, extract(epoch from now() - greatest(failed_at, '1970-01-01'))::float8 as "secondsAgo",
           succeeded_at > now() - ${familiarDays}::float8 * interval '1 day' as "isFamiliar",
           failures > 0 or succeeded_at < now() - interval '1 day' as "isStale"
      from login_source
     where name_digest = ${digestOf(attempt)} and source in (${attempt.source}, ${everywhere})`,
    'attempts-of-name',
  )
  const here = rows.find(({ source }) => source === attempt.source)
  return {
    here: here ?? none,
    everywhere: rows.find(({ source }) => source === everywhere) ?? none,
    isFamiliar: here?.isFamiliar ?? false,
    isStale: here?.isStale ?? true,
  }
}

/**
 * Counts a failure for all replicas together. Returns how often the password of this authenticator was wrong since it
 * was last correct. Without an authenticator it takes the same statement and the same time.
 */
export async function countFailure(
  db: Db,
  attempt: Attempt,
  authenticatorId: string | undefined,
): Promise<number> {
  const { rows } = await db.query<{ failures: number }>(
    sql`
    with counted as (
      insert into login_source (name_digest, source, failures, failed_at)
      select ${digestOf(attempt)}, source, 1, now()
        from unnest(array[${everywhere}, ${attempt.source}]) as source
          on conflict (name_digest, source) do update
             set failures = 1 + case when login_source.failed_at
                                            > now() - ${forgottenAfterSeconds}::float8 * interval '1 second'
                                     then login_source.failures else 0 end,
                 failed_at = now())
    insert into login_attempt (authenticator_id, failures)
    select id, 1 from authenticator where id = ${authenticatorId ?? null}
        on conflict (authenticator_id) do update set failures = login_attempt.failures + 1, last_at = now()
 returning failures`,
    'count-login-failure',
  )
  return rows[0]?.failures ?? 0
}

/** Records a correct password. */
export async function recordSuccess(db: Db, attempt: Attempt, authenticatorId: string): Promise<void> {
  await db.query(sql`
    with forgotten as (delete from login_attempt where authenticator_id = ${authenticatorId})
    insert into login_source (name_digest, source, succeeded_at)
    values (${digestOf(attempt)}, ${attempt.source}, now())
        on conflict (name_digest, source) do update set failures = 0, succeeded_at = now()`)
}

/** Resets the failures of an identity: those that its auth policy counts, and those that pause its user name. */
export async function forgetFailuresOf(db: Db, identityId: string): Promise<void> {
  await db.query(sql`
    with own as (select id, username from authenticator where identity_id = ${identityId}),
         forgotten as (delete from login_attempt where authenticator_id in (select id from own))
    update login_source set failures = 0
     where name_digest in (select sha256(convert_to(username, 'UTF8')) from own)`)
}

/** Removes attempts that no longer have an effect. */
export async function removeOldAttempts(db: Db): Promise<void> {
  await db.query(sql`
    delete from login_source
     where failed_at < now() - ${forgottenAfterSeconds}::float8 * interval '1 second'
       and succeeded_at < now() - ${familiarDays}::float8 * interval '1 day'`)
}

import {
  countRightGuess,
  forgetWrongGuesses,
  type Guess,
  type GuessHistory,
  guessHistories,
} from '@overlay/store/guesses'
import { batch, type Db, textsOfAnyLength } from '@overlay/store/postgres'
import sql from 'sql-template-tag'
import { type Subject, subjectsWhere } from './subjects.js'

/**
 * Returns how often the password of this authenticator was wrong since it was last correct, for its auth policy. Without
 * an authenticator it takes the same statement and the same time.
 */
export async function countFailure(db: Db, authenticatorId: string | undefined): Promise<number> {
  const { rows } = await db.query<{ failures: number }>(
    sql`
    insert into login_attempt (authenticator_id, failures)
    select id, 1 from authenticator where id = ${authenticatorId ?? null}
        on conflict (authenticator_id) do update set failures = login_attempt.failures + 1, last_at = now()
 returning failures`,
    'count-login-failure',
  )
  return rows[0]?.failures ?? 0
}

/** Records a correct password. */
export async function recordSuccess(db: Db, guess: Guess, authenticatorId: string): Promise<void> {
  await db.query(sql`delete from login_attempt where authenticator_id = ${authenticatorId}`)
  await countRightGuess(db, guess)
}

/**
 * Resets the failures of an identity: those that its auth policy counts, and those that pause its passwords and codes.
 */
export async function forgetFailuresOf(db: Db, identityId: string): Promise<void> {
  const { rows } = await db.query<{ username: string | null }>(sql`
    with own as (select id, username from authenticator where identity_id = ${identityId}),
         forgotten as (delete from login_attempt where authenticator_id in (select id from own))
    select username from own where username is not null`)
  await forgetWrongGuesses(
    db,
    'password',
    rows.map(({ username }) => username ?? ''),
  )
  await forgetWrongGuesses(db, 'code', [identityId])
}

/** What a login needs before it compares the password. */
export interface PasswordLookUp {
  readonly history: GuessHistory
  /** Undefined: there is no such name, or it is paused, and nothing was read of it. */
  readonly subject: Subject | undefined
}

type NamedGuess = Guess & { readonly account: string }

/**
 * Looks a user name up. Logins that run at the same time share one statement, which is the same for every name.
 * @param limits those of the guesses
 */
export function passwordLookUps(
  db: Db,
  limits: Pick<Guess, 'kind' | 'limits'>,
): (guess: NamedGuess) => Promise<PasswordLookUp> {
  const histories = guessHistories(limits)
  return batch(async (guesses: readonly NamedGuess[]) => {
    const { rows } = await db.query<Subject & { readonly history: unknown }>(
      sql`
      select past.history, found.*
        from unnest(${textsOfAnyLength(guesses.map(({ account }) => account))},
                    ${textsOfAnyLength(guesses.map(({ source }) => source))})
             with ordinality as entry (username, source, number)
       cross join lateral (${histories.select(sql`entry.username`, sql`entry.source`)}) as past
        left join lateral (${subjectsWhere(sql`a.username = entry.username and not past."isPaused"`)}) as found on true
       order by number`,
      'password-look-ups',
    )
    return rows.map(({ history, ...subject }) => ({
      history: histories.read(history),
      subject: subject.authenticatorId === null ? undefined : subject,
    }))
  })
}

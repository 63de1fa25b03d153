import { type Guess, type GuessHistory, guessHistories } from '@overlay/store/guesses'
import { batch, type Db, textsOfAnyLength } from '@overlay/store/postgres'
import sql from 'sql-template-tag'
import { type Subject, subjectsWhere } from './subjects.js'

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
             with ordinality as entry (username, source, place)
       cross join lateral (${histories.select(sql`entry.username`, sql`entry.source`)}) as past
        left join lateral (${subjectsWhere(sql`a.username = entry.username and not past."isPaused"`)}) as found on true
       order by place`,
      'password-look-ups',
    )
    return rows.map(({ history, ...subject }) => ({
      history: histories.read(history),
      subject: subject.authenticatorId === null ? undefined : subject,
    }))
  })
}

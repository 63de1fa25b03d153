import { createHash } from 'node:crypto'
import { runPeriodically } from '@overlay/process/async'
import type { Logger } from 'pino'
import sql, { join, type Sql } from 'sql-template-tag'
import { FAMILIAR_DAYS, GUESS_ROWS, REMOVE_GUESSES_MS } from '../limits.js'
import type { Db } from '../postgres/database.js'
import {
  type Debts,
  type GuessHistory,
  type Limit,
  type Limits,
  roomIn,
  type Scope,
  scopes,
} from './limits.js'

/** A secret that a client presents: a password, a code, a token. */
export interface Guess {
  /** The kind of secret. */
  readonly kind: string
  readonly limits: Limits
  /** What the secret is of, whether or not it exists. Absent: secrets that are not of an account, such as tokens. */
  readonly account?: string
  /** The network of the client, as of `sourceOf`. */
  readonly source: string
}

const ALL_SOURCES = '*'
const ALL_ACCOUNTS = Buffer.alloc(0)

const days = (count: number): Sql => sql`${count}::float8 * interval '1 day'`
const seconds = (count: number): Sql => sql`${count}::float8 * interval '1 second'`

/** People type passwords where the name belongs: names are stored as digests. */
const digestOf = (account: string): Buffer => createHash('sha256').update(account).digest()

const accountOf = ({ account }: Guess): Buffer => (account === undefined ? ALL_ACCOUNTS : digestOf(account))

function keyOf(guess: Guess, scope: Scope): Sql {
  const account = scope === 'source' ? ALL_ACCOUNTS : accountOf(guess)
  return sql`${guess.kind}, ${account}::bytea, ${scope === 'account' ? ALL_SOURCES : guess.source}`
}

/** What is known of a guess in one scope. */
interface HistoryRow {
  readonly scope: Scope
  readonly debtSeconds: number
  readonly isFamiliar: boolean
  readonly isOld: boolean
}

/** Selects rows of a history. The account is a digest, empty for secrets that are not of an account. */
const historyRows = (kind: Sql, account: Sql, source: Sql): Sql => sql`
  select case when account = ${ALL_ACCOUNTS} then 'source'
              when source = ${ALL_SOURCES} then 'account' else 'account-at-source' end as scope,
         extract(epoch from greatest(settled_at, now()) - now())::float8 as "debtSeconds",
         succeeded_at > now() - ${days(FAMILIAR_DAYS)} as "isFamiliar",
         succeeded_at < now() - interval '1 day' as "isOld"
    from guess
   where (kind, account, source) in ((${kind}, ${account}, ${source}), (${kind}, ${account}, ${ALL_SOURCES}),
                                     (${kind}, ${ALL_ACCOUNTS}::bytea, ${source}))`

function historyOf(rows: readonly HistoryRow[]): GuessHistory {
  const here = rows.find(({ scope }) => scope === 'account-at-source')
  return {
    debts: Object.fromEntries(rows.map(({ scope, debtSeconds }) => [scope, debtSeconds])) as Debts,
    isFamiliar: here?.isFamiliar ?? false,
    isStale: here === undefined || here.isOld || here.debtSeconds > 0,
  }
}

/** Reads what is known before a guess. The same statement for every account, whether or not it exists. */
export async function guessHistory(db: Db, guess: Guess): Promise<GuessHistory> {
  const { kind, source } = guess
  const { rows } = await db.query<HistoryRow & Record<string, unknown>>(
    historyRows(sql`${kind}`, sql`${accountOf(guess)}::bytea`, sql`${source}`),
  )
  return historyOf(rows)
}

/** What is known of many guesses of one kind, for statements that read more about them. */
export interface GuessHistories {
  /** Selects `history`, and `isPaused`: the history pauses the guess. The account is text, not empty. */
  select(account: Sql, source: Sql): Sql
  read(history: unknown): GuessHistory
}

export const guessHistories = ({ kind, limits }: Pick<Guess, 'kind' | 'limits'>): GuessHistories => ({
  select: (account, source) => sql`
    select coalesce(json_agg(one), '[]') as history,
           coalesce(bool_or("debtSeconds" > ${roomOf(limits)} and (scope = 'account-at-source' or not "isHere")),
                    false) as "isPaused"
      from (select row.*, bool_or("isFamiliar" and scope = 'account-at-source') over () as "isHere"
              from (${historyRows(sql`${kind}`, sql`sha256(convert_to(${account}, 'UTF8'))`, source)}) as row) as one`,
  read: (history) => historyOf(history as readonly HistoryRow[]),
})

/** The longest debt of a scope that leaves room for one more guess, as `pauseOf` computes it. */
const roomOf = (limits: Limits): Sql => sql`
  case scope ${join(
    scopes.map((scope) => sql`when ${scope} then ${roomIn(limits[scope])}::float8`),
    ' ',
  )} end`

/**
 * Counts a wrong guess, for all replicas together. Returns the scopes in which a pause begins with it: a pause that
 * further guesses prolong begins once. What a familiar source guesses does not count against other accounts there.
 */
export async function countWrongGuess(
  db: Db,
  guess: Guess,
  { isFamiliar }: Pick<GuessHistory, 'isFamiliar'>,
): Promise<Scope[]> {
  const counted = scopes.flatMap((scope) => {
    const limit = guess.limits[scope]
    const isCounted = limit && (scope === 'source' ? !isFamiliar : guess.account !== undefined)
    return isCounted ? [{ scope, limit }] : []
  })
  const { rows } = await db.query<{ scope: Scope }>(sql`
    with ${join(counted.map(({ limit, scope }, i) => sql`${name(i)} as (${addOne(guess, scope, limit)})`))}
    select scope from (${join(
      counted.map(({ scope }, i) => sql`select ${scope}::text as scope, begins from ${name(i)}`),
      ' union all ',
    )}) as all_counted where begins`)
  return rows.map(({ scope }) => scope)
}

const names = [sql`first`, sql`second`, sql`third`]
const name = (i: number): Sql => names[i] ?? sql`other`

/** A full bucket stays full: guesses that overlapped do not prolong the pause. */
const addOne = (guess: Guess, scope: Scope, { burst, everySeconds }: Limit): Sql => sql`
  insert into guess (kind, account, source, settled_at)
  values (${keyOf(guess, scope)}, now() + ${seconds(everySeconds)})
      on conflict (kind, account, source) do update
         set settled_at = least(greatest(guess.settled_at, now()) + ${seconds(everySeconds)},
                                now() + ${seconds(burst * everySeconds)}),
             paused_at = case when guess.settled_at > now() + ${seconds((burst - 2) * everySeconds)}
                              then coalesce(guess.paused_at, now())
                              when guess.settled_at > now() then guess.paused_at end
   returning coalesce(paused_at = now(), false) as begins`

/** Records a right guess: what was wrong at this source counts no more, and the source is familiar. */
export async function countRightGuess(db: Db, guess: Guess): Promise<void> {
  await db.query(sql`
    insert into guess (kind, account, source, succeeded_at) values (${keyOf(guess, 'account-at-source')}, now())
        on conflict (kind, account, source) do update
           set settled_at = '-infinity', paused_at = null, succeeded_at = now()`)
}

/** Ends the pauses of these accounts at all sources. */
export async function forgetWrongGuesses(db: Db, kind: string, accounts: readonly string[]): Promise<void> {
  await db.query(sql`
    update guess set settled_at = '-infinity', paused_at = null
     where kind = ${kind} and account = any(${accounts.map(digestOf)}::bytea[])`)
}

/**
 * Removes rows without effect. Of more than `most` wrong guesses or successes, each counted apart, those go that are the
 * least useful: clients cannot fill the table, and rows of one kind do not displace those of the other.
 */
export async function removeOldGuesses(db: Db, most = GUESS_ROWS): Promise<void> {
  await db.query(sql`
    delete from guess where settled_at < now() and succeeded_at < now() - ${days(FAMILIAR_DAYS)}`)
  const beyond = sql`offset ${most}::int`
  await db.query(sql`
    delete from guess
     where ctid in (
      select ctid from (select ctid from guess where succeeded_at = '-infinity' order by settled_at desc ${beyond}) as surplus
       union all
      select ctid from (select ctid from guess where succeeded_at > '-infinity' order by succeeded_at desc ${beyond}) as others)`)
}

export const startRemovingGuesses = (db: Db, log: Pick<Logger, 'warn'>): AsyncDisposable =>
  runPeriodically(REMOVE_GUESSES_MS, () =>
    removeOldGuesses(db).catch((err: unknown) => log.warn({ err }, 'old guesses not removed')),
  )

import { type TestDatabase, testDatabase } from '@overlay/launcher/testing'
import fc from 'fast-check'
import sql from 'sql-template-tag'
import { afterAll, beforeAll, expect, test } from 'vitest'
import {
  countRightGuess,
  countWrongGuess,
  forgetWrongGuesses,
  type Guess,
  guessHistory,
  type Limits,
  type Pause,
  pauseOf,
  removeOldGuesses,
  type Scope,
  scopes,
} from '../src/guesses/index.js'
import { type Database, openDatabase, type Tx } from '../src/postgres/index.js'

let database: TestDatabase
let db: Database
beforeAll(async () => {
  database = await testDatabase('identity')
  db = openDatabase(database.urlOf('identity'), 'identity', { max: 2 })
})
afterAll(async () => {
  await db[Symbol.asyncDispose]()
  await database[Symbol.asyncDispose]()
})

const limits: Limits = {
  'account-at-source': { burst: 3, everySeconds: 10 },
  account: { burst: 5, everySeconds: 20 },
  source: { burst: 6, everySeconds: 5 },
}
const guess = (account: string, source: string): Guess => ({ kind: 'test', limits, account, source })

/** Runs work in one transaction, in which no time passes but by `wait`, and undoes it. */
async function inStillTime(work: (tx: Tx) => Promise<void>): Promise<void> {
  const undone = new Error('undone')
  const running = db.transaction(undefined, async (tx) => {
    await work(tx)
    throw undone
  })
  await running.catch((err: unknown) => {
    if (err !== undone) throw err
  })
}

const wait = (tx: Tx, seconds: number) =>
  tx.query(sql`
    update guess set settled_at = settled_at - ${seconds}::float8 * interval '1 second',
                     paused_at = paused_at - ${seconds}::float8 * interval '1 second',
                     succeeded_at = succeeded_at - ${seconds}::float8 * interval '1 second'`)

interface Outcome {
  readonly pause: Pause | undefined
  readonly begun: readonly Scope[]
}

async function guessWrongly(tx: Tx, one: Guess): Promise<Outcome> {
  const history = await guessHistory(tx, one)
  const pause = pauseOf(limits, history)
  return { pause, begun: pause ? [] : await countWrongGuess(tx, one, history) }
}

const account = fc.constantFrom('alice', 'bob', 'carol')
const source = fc.constantFrom('10.0.0.1', '10.0.0.2', '10.0.0.3')
const step = fc.oneof(
  { weight: 8, arbitrary: fc.record({ type: fc.constant('wrong' as const), account, source }) },
  { weight: 1, arbitrary: fc.record({ type: fc.constant('right' as const), account, source }) },
  {
    weight: 3,
    arbitrary: fc.record({ type: fc.constant('wait' as const), seconds: fc.integer({ min: 1, max: 60 }) }),
  },
)
const steps = fc.array(step, { minLength: 20, maxLength: 60 })
const runs = { numRuns: 15 }

test('in any time no scope admits more wrong guesses than its limit', () =>
  fc.assert(
    fc.asyncProperty(steps, (all) =>
      inStillTime(async (tx) => {
        const admitted = new Map<string, number[]>()
        let now = 0
        for (const one of all) {
          if (one.type === 'wait') {
            await wait(tx, one.seconds)
            now += one.seconds
          } else if (one.type === 'wrong') {
            const { pause } = await guessWrongly(tx, guess(one.account, one.source))
            if (pause) continue
            const keys = {
              'account-at-source': `${one.account} ${one.source}`,
              account: one.account,
              source: one.source,
            }
            for (const scope of scopes) {
              const key = `${scope}: ${keys[scope]}`
              const { burst = 0, everySeconds = 0 } = limits[scope] ?? {}
              const times = [...(admitted.get(key) ?? []), now]
              admitted.set(key, times)
              for (const [i, since] of times.entries())
                expect(times.length - i).toBeLessThanOrEqual(burst + (now - since) / everySeconds)
            }
          }
        }
      }),
    ),
    runs,
  ))

test('a pause ends after the seconds that it names, and not before', () =>
  fc.assert(
    fc.asyncProperty(steps, account, source, (all, name, network) =>
      inStillTime(async (tx) => {
        for (const one of all)
          if (one.type === 'wait') await wait(tx, one.seconds)
          else if (one.type === 'wrong') await guessWrongly(tx, guess(one.account, one.source))
          else await countRightGuess(tx, guess(one.account, one.source))
        const one = guess(name, network)
        const pause = pauseOf(limits, await guessHistory(tx, one))
        if (!pause) return
        await wait(tx, pause.seconds - 0.5)
        expect(pauseOf(limits, await guessHistory(tx, one))).toBeDefined()
        await wait(tx, 0.5)
        expect(pauseOf(limits, await guessHistory(tx, one))).toBeUndefined()
      }),
    ),
    runs,
  ))

test('whatever others guess, an account is admitted where it has proved itself', () =>
  fc.assert(
    fc.asyncProperty(steps, (all) =>
      inStillTime(async (tx) => {
        const own = guess('owner', '10.0.0.1')
        await countRightGuess(tx, own)
        for (const one of all)
          if (one.type === 'wait') await wait(tx, one.seconds)
          else {
            await guessWrongly(tx, guess(one.account, '10.0.0.1'))
            await guessWrongly(tx, guess('owner', one.source === '10.0.0.1' ? '10.0.0.4' : one.source))
          }
        expect(pauseOf(limits, await guessHistory(tx, own))).toBeUndefined()
      }),
    ),
    runs,
  ))

test('a source where an account has proved itself has a limit, too', () =>
  inStillTime(async (tx) => {
    const own = guess('owner', '10.0.0.1')
    await countRightGuess(tx, own)
    const outcomes: Outcome[] = []
    for (let i = 0; i < 4; i++) outcomes.push(await guessWrongly(tx, own))
    expect(outcomes.map(({ pause }) => pause?.scope)).toEqual([...Array(3), 'account-at-source'])
  }))

test('a pause is reported when it begins, not when a guess prolongs it', () =>
  inStillTime(async (tx) => {
    const one = guess('alice', '10.0.0.1')
    const begun: (readonly Scope[])[] = []
    for (let i = 0; i < 4; i++) begun.push((await guessWrongly(tx, one)).begun)
    expect(begun).toEqual([[], [], ['account-at-source'], []])
    await wait(tx, 10)
    expect((await guessWrongly(tx, one)).begun).toEqual([])
    await wait(tx, 31)
    for (let i = 0; i < 2; i++) expect((await guessWrongly(tx, one)).begun).toEqual([])
  }))

test('a success ends the pause at its source alone, and forgetting ends those of the account everywhere', () =>
  inStillTime(async (tx) => {
    const [here, there] = [guess('alice', '10.0.0.1'), guess('alice', '10.0.0.2')]
    for (const one of [here, there]) for (let i = 0; i < 3; i++) await guessWrongly(tx, one)
    const paused = async (one: Guess) => pauseOf(limits, await guessHistory(tx, one)) !== undefined
    expect([await paused(here), await paused(there)]).toEqual([true, true])
    await countRightGuess(tx, here)
    expect([await paused(here), await paused(there)]).toEqual([false, true])
    await forgetWrongGuesses(tx, 'test', ['alice'])
    expect([await paused(here), await paused(there)]).toEqual([false, false])
    await forgetWrongGuesses(tx, 'test', ['bob'])
  }))

test('a guess of no account counts for its source alone', () =>
  inStillTime(async (tx) => {
    const token: Guess = {
      kind: 'token',
      limits: { source: { burst: 3, everySeconds: 5 } },
      source: '10.0.0.1',
    }
    for (let i = 0; i < 3; i++) await countWrongGuess(tx, token, { isFamiliar: false })
    expect(pauseOf(token.limits, await guessHistory(tx, token))).toEqual({ scope: 'source', seconds: 5 })
    const other = { ...token, source: '10.0.0.2' }
    expect(pauseOf(token.limits, await guessHistory(tx, other))).toBeUndefined()
    expect(pauseOf(limits, await guessHistory(tx, guess('alice', '10.0.0.1')))).toBeUndefined()
  }))

test('of more rows than the table may have, those that settle first are removed', () =>
  inStillTime(async (tx) => {
    await countRightGuess(tx, guess('alice', '10.0.0.1'))
    for (let i = 0; i < 5; i++) await countWrongGuess(tx, guess('alice', '10.0.0.9'), { isFamiliar: true })
    for (let i = 0; i < 20; i++) await guessWrongly(tx, guess(`name ${i}`, `10.0.1.${i}`))
    await removeOldGuesses(tx, 5)
    const { rows } = await tx.query(sql`select from guess`)
    expect(rows).toHaveLength(6)
    expect(await guessHistory(tx, guess('alice', '10.0.0.1'))).toMatchObject({ isFamiliar: true })
    expect(pauseOf(limits, await guessHistory(tx, guess('alice', '10.0.0.9')))).toBeDefined()
  }))

test('any number of successes leaves the wrong guesses in the table', () =>
  inStillTime(async (tx) => {
    const attacked = guess('alice', '10.0.0.9')
    for (let i = 0; i < 3; i++) await guessWrongly(tx, attacked)
    for (let i = 0; i < 20; i++) await countRightGuess(tx, guess(`name ${i}`, `10.0.1.${i}`))
    await removeOldGuesses(tx, 5)
    expect(pauseOf(limits, await guessHistory(tx, attacked))).toBeDefined()
    const { rows } = await tx.query(sql`select from guess where succeeded_at > '-infinity'`)
    expect(rows).toHaveLength(5)
  }))
